/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: 2026 The tpstream authors
 *
 * Graphs of the CUDA device, made node by node of what the runtime has captured:
 * no stream is ever in CUDA's own capture mode, which nearly every other call
 * would spoil. Kernel nodes go through the driver's interface, which takes a
 * kernel of a library and the context to run it in.
 *
 * A node may need several of CUDA's, one behind the other; what comes after it
 * comes after the last.
 */
#include "cuda/cuda.h"
#include "cuda/times.h"

#include <stdlib.h>
#include <string.h>

typedef struct cuda_graph {
  cudaGraph_t graph; /* kept: its nodes name those of `exec` */
  cudaGraphExec_t exec;
  cudaGraphNode_t *last; /* of each node of the list, CUDA's last one */
} cuda_graph;

/* A list on its way into a graph. */
typedef struct builder {
  tps_cuda_device *self; /* of the node in hand */
  cudaGraph_t graph;
  cudaGraphNode_t *last;  /* of the nodes so far */
  cudaGraphNode_t *after; /* what the next one of CUDA's comes after */
  size_t after_count;
  tps_error *err;
} builder;

static void *pointer(uint64_t address) { return (void *)(uintptr_t)address; }

/* The node just added is what the next one comes after. */
static int added(builder *b, int code, cudaGraphNode_t node, const char *what) {
  if (code != 0) return tps_cuda_fail(b->err, code, "%s", what);
  b->after[0] = node;
  b->after_count = 1;
  return 0;
}

/* --- kernels -------------------------------------------------------------- */

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_params(const tps_graph_node *node) {
  const tps_launch *launch = &node->u.run.launch;
  tps_cuda_device *self = tps_cuda(node->device);
  return (CUDA_KERNEL_NODE_PARAMS_v2){
      .gridDimX = launch->grid[0],
      .gridDimY = launch->grid[1],
      .gridDimZ = launch->grid[2],
      .blockDimX = launch->block[0],
      .blockDimY = launch->block[1],
      .blockDimZ = launch->block[2],
      .sharedMemBytes = launch->shared,
      .kernelParams = launch->argv,
      .kern = (CUkernel)node->u.run.kernel,
      .ctx = atomic_load_explicit(&self->context, memory_order_acquire)};
}

/* Blocks: what every device with clusters allows. */
#define CLUSTER_PORTABLE 8

static int allow_cluster(const builder *b, const tps_graph_node *node) {
  const uint32_t *c = node->u.run.launch.cluster;
  if ((uint64_t)c[0] * c[1] * c[2] <= CLUSTER_PORTABLE) return 0;
  cudaError_t e = cudaFuncSetAttribute(
      node->u.run.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  return e == cudaSuccess ? 0
                          : tps_cuda_fail(b->err, e, "cudaFuncSetAttribute");
}

/* A hint, of which an older driver knows nothing. */
static void set_carveout(const builder *b, CUgraphNode kernel,
                         unsigned percent) {
  CUkernelNodeAttrValue value;
  memset(&value, 0, sizeof value);
  value.sharedMemCarveout = percent;
  b->self->driver.graph_set_attribute(
      kernel, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &value);
}

static int set_attributes(const builder *b, const tps_graph_node *node,
                          CUgraphNode kernel) {
  const tps_launch *launch = &node->u.run.launch;
  const tps_cuda_driver *driver = &b->self->driver;
  CUkernelNodeAttrValue value;
  int code = 0;
  memset(&value, 0, sizeof value);
  if (launch->cooperative) {
    value.cooperative = 1;
    code = (int)driver->graph_set_attribute(
        kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value);
  }
  if (code == 0 && launch->cluster[0] != 0) {
    memset(&value, 0, sizeof value);
    value.clusterDim.x = launch->cluster[0];
    value.clusterDim.y = launch->cluster[1];
    value.clusterDim.z = launch->cluster[2];
    code = (int)driver->graph_set_attribute(
        kernel, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value);
  }
  if (code == 0 && launch->carveout != 0)
    set_carveout(b, kernel, launch->carveout - 1u);
  if (code == 0) return 0;
  return tps_cuda_fail(b->err, code, "cuGraphKernelNodeSetAttribute");
}

static int add_kernel(builder *b, const tps_graph_node *node) {
  CUDA_KERNEL_NODE_PARAMS_v2 params = kernel_params(node);
  CUgraphNode kernel = NULL;
  int code = 0;
  if (node->u.run.launch.cluster[0] != 0) code = allow_cluster(b, node);
  if (code != 0) return code;
  code = (int)b->self->driver.graph_add_kernel(&kernel, b->graph, b->after,
                                               b->after_count, &params);
  if (code == 0) {
    code = set_attributes(b, node, kernel);
    if (code != 0) return code;
  }
  return added(b, code, kernel, "cuGraphAddKernelNode");
}

/* --- copies, fills, the host ---------------------------------------------- */

/* Addresses are unified, whatever the devices. */
static int add_copy(builder *b, uint64_t to, uint64_t from, uint64_t bytes) {
  cudaGraphNode_t copy = NULL;
  cudaError_t e = cudaGraphAddMemcpyNode1D(
      &copy, b->graph, b->after, b->after_count, pointer(to), pointer(from),
      bytes, cudaMemcpyDefault);
  return added(b, (int)e, copy, "cudaGraphAddMemcpyNode1D");
}

/* Row by row. */
static int add_rows(builder *b, uint64_t to, uint64_t from,
                    const tps_rows *rows) {
  cudaGraphNode_t copy = NULL;
  struct cudaMemcpy3DParms params;
  memset(&params, 0, sizeof params);
  params.dstPtr = (struct cudaPitchedPtr){pointer(to), rows->to_pitch,
                                          rows->bytes, rows->count};
  params.srcPtr = (struct cudaPitchedPtr){pointer(from), rows->from_pitch,
                                          rows->bytes, rows->count};
  params.extent = (struct cudaExtent){rows->bytes, rows->count, 1};
  params.kind = cudaMemcpyDefault;
  cudaError_t e = cudaGraphAddMemcpyNode(&copy, b->graph, b->after,
                                         b->after_count, &params);
  return added(b, (int)e, copy, "cudaGraphAddMemcpyNode");
}

static int add_memset(builder *b, const struct cudaMemsetParams *params) {
  cudaGraphNode_t fill = NULL;
  cudaError_t e =
      cudaGraphAddMemsetNode(&fill, b->graph, b->after, b->after_count, params);
  return added(b, (int)e, fill, "cudaGraphAddMemsetNode");
}

/* Four bytes of each of `count` elements of eight. */
static int add_column(builder *b, uint64_t to, uint64_t value, uint64_t count) {
  struct cudaMemsetParams params = {.dst = pointer(to),
                                    .pitch = 8,
                                    .value = (unsigned)value,
                                    .elementSize = 4,
                                    .width = 1,
                                    .height = count};
  return add_memset(b, &params);
}

#define SEED 512 /* elements, as in memory.c */

/* Eight bytes with unlike halves: the first few by columns, the rest copied from
 * what is there, doubling it each time. */
static int add_halves(builder *b, uint64_t to, uint64_t pattern,
                      uint64_t count) {
  uint64_t done = count < SEED ? count : SEED;
  int code = add_column(b, to, (uint32_t)pattern, done);
  if (code == 0) code = add_column(b, to + 4, pattern >> 32, done);
  while (code == 0 && done < count) {
    uint64_t n = count - done < done ? count - done : done;
    code = add_copy(b, to + done * 8, to, n * 8);
    done += n;
  }
  return code;
}

/* As one node, whatever the pattern but for eight bytes with unlike halves: false
 * then. */
static bool plain_fill(const tps_graph_node *node,
                       struct cudaMemsetParams *out) {
  uint64_t pattern = node->u.fill.pattern, count = node->u.fill.count;
  unsigned width = node->u.fill.width;
  if (width == 8) {
    if ((uint32_t)pattern != pattern >> 32) return false;
    width = 4;
    count *= 2;
  }
  uint64_t mask = ((uint64_t)1 << 8 * width) - 1;
  *out = (struct cudaMemsetParams){.dst = pointer(node->u.fill.to),
                                   .value = (unsigned)(pattern & mask),
                                   .elementSize = width,
                                   .width = count,
                                   .height = 1};
  return true;
}

static int add_fill(builder *b, const tps_graph_node *node) {
  struct cudaMemsetParams params;
  if (!plain_fill(node, &params))
    return add_halves(b, node->u.fill.to, node->u.fill.pattern,
                      node->u.fill.count);
  return add_memset(b, &params);
}

typedef struct notice {
  void (*notify)(void *data, bool failed);
  void *data;
} notice;

/* On a thread of the driver's; after a fault not at all. */
static void CUDART_CB deliver(void *data) {
  const notice *n = data;
  n->notify(n->data, false);
}

static void CUDART_CB forget(void *data) { free(data); }

/* CUDA itself frees the notice, once no graph and no launch has it. */
static int keep_notice(const builder *b, notice *n) {
  cudaUserObject_t object = NULL;
  cudaError_t e = cudaUserObjectCreate(&object, n, forget, 1,
                                       cudaUserObjectNoDestructorSync);
  if (e != cudaSuccess) {
    free(n);
    return tps_cuda_fail(b->err, e, "cudaUserObjectCreate");
  }
  e = cudaGraphRetainUserObject(b->graph, object, 1, cudaGraphUserObjectMove);
  if (e == cudaSuccess) return 0;
  cudaUserObjectRelease(object, 1);
  return tps_cuda_fail(b->err, e, "cudaGraphRetainUserObject");
}

static int add_host(builder *b, const tps_graph_node *node) {
  cudaGraphNode_t host = NULL;
  notice *n = malloc(sizeof *n);
  if (n == NULL)
    return tps_fail(b->err, TPS_NO_HOST_MEMORY, "no memory for a graph");
  *n = (notice){node->u.host.notify, node->u.host.data};
  int code = keep_notice(b, n);
  if (code != 0) return code;
  struct cudaHostNodeParams params = {.fn = deliver, .userData = n};
  cudaError_t e =
      cudaGraphAddHostNode(&host, b->graph, b->after, b->after_count, &params);
  return added(b, (int)e, host, "cudaGraphAddHostNode");
}

static int add_record(builder *b, const tps_graph_node *node) {
  cudaEvent_t event = (cudaEvent_t)node->u.record.event;
  cudaGraphNode_t record = NULL;
  if (event == NULL) {
    cudaError_t e =
        cudaGraphAddEmptyNode(&record, b->graph, b->after, b->after_count);
    return added(b, (int)e, record, "cudaGraphAddEmptyNode");
  }
  cudaError_t e = cudaGraphAddEventRecordNode(&record, b->graph, b->after,
                                              b->after_count, event);
  return added(b, (int)e, record, "cudaGraphAddEventRecordNode");
}

/* --- conditions ----------------------------------------------------------- */

static int add_list(cudaGraph_t graph, const tps_graph_node_list *list,
                    cudaGraphNode_t *last, tps_error *err);

/* Sets the condition to what the flag says now. */
static int add_setter(builder *b, CUgraphConditionalHandle condition,
                      uint64_t flag) {
  CUgraphNode setter = NULL;
  void *argv[] = {&condition, &flag};
  CUDA_KERNEL_NODE_PARAMS_v2 params = {.gridDimX = 1,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 1,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = argv};
  int code = tps_cuda_condition_kernel(b->self, &params.func, b->err);
  if (code != 0) return code;
  code = (int)b->self->driver.graph_add_kernel(&setter, b->graph, b->after,
                                               b->after_count, &params);
  return added(b, code, setter, "cuGraphAddKernelNode of a condition");
}

static int add_conditional(builder *b, CUgraphConditionalHandle condition,
                           bool loop, CUgraph *body) {
  CUgraphNodeParams params;
  CUgraphNode node = NULL;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = condition;
  params.conditional.type =
      loop ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  params.conditional.ctx =
      atomic_load_explicit(&b->self->context, memory_order_acquire);
  int code = (int)b->self->driver.graph_add(&node, b->graph, b->after, NULL,
                                            b->after_count, &params);
  if (code == 0) *body = params.conditional.phGraph_out[0];
  return added(b, code, node, "cuGraphAddNode of a condition");
}

/* At the end of a loop's body its flag is looked at again. */
static int end_loop(const builder *outer, cudaGraph_t body,
                    const tps_graph_node_list *list,
                    const cudaGraphNode_t *last,
                    CUgraphConditionalHandle condition, uint64_t flag) {
  bool *followed = calloc(list->count + 1, sizeof *followed);
  builder b = {.self = outer->self,
               .graph = body,
               .after = calloc(list->count + 1, sizeof *b.after),
               .err = outer->err};
  if (followed == NULL || b.after == NULL) {
    free(followed);
    free(b.after);
    return tps_fail(b.err, TPS_NO_HOST_MEMORY, "no memory for a graph");
  }
  for (uint32_t i = 0; i < list->count; i++)
    for (uint32_t j = 0; j < list->nodes[i].after_count; j++)
      followed[list->nodes[i].after[j]] = true;
  for (uint32_t i = 0; i < list->count; i++)
    if (!followed[i]) b.after[b.after_count++] = last[i];
  int code = add_setter(&b, condition, flag);
  free(followed);
  free(b.after);
  return code;
}

static int add_condition(builder *b, const tps_graph_node *node) {
  const tps_graph_node_list *list = &node->u.condition.body;
  bool loop = node->kind == TPS_NODE_WHILE;
  CUgraphConditionalHandle condition = 0;
  CUgraph body = NULL;
  int code = (int)b->self->driver.condition_create(
      &condition, b->graph,
      atomic_load_explicit(&b->self->context, memory_order_acquire), 0, 0);
  if (code != 0)
    return tps_cuda_fail(b->err, code, "cuGraphConditionalHandleCreate");
  code = add_setter(b, condition, node->u.condition.flag);
  if (code == 0) code = add_conditional(b, condition, loop, &body);
  if (code != 0) return code;
  cudaGraphNode_t *last = calloc(list->count + 1, sizeof *last);
  if (last == NULL)
    return tps_fail(b->err, TPS_NO_HOST_MEMORY, "no memory for a graph");
  code = add_list(body, list, last, b->err);
  if (code == 0 && loop)
    code = end_loop(b, body, list, last, condition, node->u.condition.flag);
  free(last);
  return code;
}

/* --- lists ---------------------------------------------------------------- */

static int add_node(builder *b, const tps_graph_node *node) {
  switch ((tps_graph_node_kind)node->kind) {
  case TPS_NODE_LAUNCH: return add_kernel(b, node);
  case TPS_NODE_COPY:
    tps_cuda_open_way(node->u.copy.to_device, node->u.copy.from_device);
    if (node->u.copy.rows.count > 1)
      return add_rows(b, node->u.copy.to, node->u.copy.from,
                      &node->u.copy.rows);
    return add_copy(b, node->u.copy.to, node->u.copy.from,
                    node->u.copy.rows.bytes);
  case TPS_NODE_FILL: return add_fill(b, node);
  case TPS_NODE_HOST: return add_host(b, node);
  case TPS_NODE_RECORD: return add_record(b, node);
  default: return add_condition(b, node);
  }
}

/* Each node with its own device current. */
static int add_list(cudaGraph_t graph, const tps_graph_node_list *list,
                    cudaGraphNode_t *last, tps_error *err) {
  int code = 0;
  builder b = {.graph = graph,
               .last = last,
               .after = calloc(list->count + 1, sizeof *b.after),
               .err = err};
  if (b.after == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a graph");
  for (uint32_t i = 0; i < list->count && code == 0; i++) {
    const tps_graph_node *node = &list->nodes[i];
    b.self = tps_cuda(node->device);
    b.after_count = node->after_count;
    for (uint32_t j = 0; j < node->after_count; j++)
      b.after[j] = last[node->after[j]];
    code = tps_cuda_use(node->device, err);
    if (code == 0) code = add_node(&b, node);
    last[i] = b.after[0];
  }
  free(b.after);
  return code;
}

/* CUDA's graph of the list; `last`: room for each node. */
static int make(tps_device *device, const tps_graph_node_list *list,
                cudaGraph_t *out, cudaGraphNode_t *last, tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaGraphCreate(out, 0);
  if (e != cudaSuccess) return tps_cuda_fail(err, e, "cudaGraphCreate");
  code = add_list(*out, list, last, err);
  if (code != 0) cudaGraphDestroy(*out);
  cudaGetLastError();
  return code;
}

/* --- the face ------------------------------------------------------------- */

int tps_cuda_graph_build(tps_device *device, const tps_graph_node_list *list,
                         tps_device_graph **out, tps_error *err) {
  cuda_graph *g = calloc(1, sizeof *g);
  if (g != NULL) g->last = calloc(list->count + 1, sizeof *g->last);
  if (g == NULL || g->last == NULL) {
    free(g);
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a graph");
  }
  int code = make(device, list, &g->graph, g->last, err);
  if (code == 0) code = tps_cuda_use(device, err);
  if (code == 0) {
    cudaError_t e = cudaGraphInstantiate(&g->exec, g->graph, 0);
    if (e == cudaSuccess) {
      *out = (tps_device_graph *)g;
      return 0;
    }
    code = tps_cuda_fail(err, e, "cudaGraphInstantiate");
    cudaGraphDestroy(g->graph);
  }
  free(g->last);
  free(g);
  return code;
}

/* What CUDA can't change is built anew, and says then what is wrong. */
static int settle(int code, const char *what, tps_error *err) {
  cudaGetLastError();
  if (code == 0) return 0;
  return tps_code_sticky(code) ? tps_cuda_fail(err, code, "%s", what)
                               : TPS_NOT_SUPPORTED;
}

static int change_fill(const cuda_graph *g, const tps_graph_node *node,
                       uint32_t index, tps_error *err) {
  struct cudaMemsetParams params;
  if (!plain_fill(node, &params)) return TPS_NOT_SUPPORTED;
  cudaError_t e =
      cudaGraphExecMemsetNodeSetParams(g->exec, g->last[index], &params);
  return settle((int)e, "cudaGraphExecMemsetNodeSetParams", err);
}

/* What was queued keeps the parameters that it was queued with. */
int tps_cuda_graph_change(tps_device *device, tps_device_graph *graph,
                          const tps_graph_node_list *list, uint32_t index,
                          tps_error *err) {
  const cuda_graph *g = (const cuda_graph *)graph;
  const tps_graph_node *node = &list->nodes[index];
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  if (node->kind == TPS_NODE_FILL) return change_fill(g, node, index, err);
  CUDA_KERNEL_NODE_PARAMS_v2 params = kernel_params(node);
  code = (int)tps_cuda(device)->driver.graph_set_kernel(g->exec, g->last[index],
                                                        &params);
  return settle(code, "cuGraphExecKernelNodeSetParams", err);
}

static bool calls_host(const tps_graph_node_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->nodes[i].kind == TPS_NODE_HOST) return true;
  return false;
}

/* The nodes of the first graph go on naming those of `exec`. */
int tps_cuda_graph_update(tps_device *device, tps_device_graph *graph,
                          const tps_graph_node_list *list, tps_error *err) {
  const cuda_graph *g = (const cuda_graph *)graph;
  cudaGraphExecUpdateResultInfo info;
  cudaGraph_t fresh = NULL;
  if (calls_host(list)) return TPS_NOT_SUPPORTED;
  cudaGraphNode_t *last = calloc(list->count + 1, sizeof *last);
  if (last == NULL)
    return tps_fail(err, TPS_NO_HOST_MEMORY, "no memory for a graph");
  int code = make(device, list, &fresh, last, err);
  free(last);
  if (code == 0) code = tps_cuda_use(device, err);
  if (code != 0) return code;
  cudaError_t e = cudaGraphExecUpdate(g->exec, fresh, &info);
  cudaGraphDestroy(fresh);
  return settle((int)e, "cudaGraphExecUpdate", err);
}

static cudaError_t start(tps_device *device, cudaGraphExec_t exec,
                         tps_device_stream *stream) {
  CUresult r = tps_cuda(device)->driver.graph_launch(exec, (CUstream)stream);
  if (r == CUDA_SUCCESS) return cudaSuccess;
  return cudaGraphLaunch(exec, (cudaStream_t)stream);
}

int tps_cuda_graph_launch(tps_device *device, tps_device_graph *graph,
                          tps_device_stream *stream, tps_op *op,
                          tps_error *err) {
  int code = tps_cuda_use(device, err);
  if (code != 0) return code;
  tps_cuda_span *span = tps_cuda_times_begin(device, stream, op);
  cudaError_t e = start(device, ((cuda_graph *)graph)->exec, stream);
  tps_cuda_times_end(device, span, stream, e == cudaSuccess);
  return e == cudaSuccess ? 0 : tps_cuda_fail(err, e, "cudaGraphLaunch");
}

/* CUDA keeps what runs until it has ended. */
void tps_cuda_graph_destroy(tps_device *device, tps_device_graph *graph) {
  cuda_graph *g = (cuda_graph *)graph;
  if (tps_cuda_use(device, NULL) == 0) {
    cudaGraphExecDestroy(g->exec);
    cudaGraphDestroy(g->graph);
  }
  cudaGetLastError();
  free(g->last);
  free(g);
}
