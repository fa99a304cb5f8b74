// The kernel of solar_system.lua. solar_system.ptx beside it is what it compiles
// to, for machines without the run-time compiler; `tpstream
// examples/solar_system.lua --ptx` makes it anew.

// Leapfrog (kick, drift, kick) of n bodies in one block, a thread a body, body 0
// the Sun. state holds x y z vx vy vz of body after body, gm its G times mass.
// Each launch makes `steps` steps of `dt`, from step `first` on. Counted as well
// are a planet's revolutions: returns, seen from the Sun, to the ecliptic
// longitude of start (x y), the last one at time last[i].
extern "C" __global__ void leapfrog(double *state, const double *gm,
                                    const double *start, int *turns,
                                    double *last, int n, double dt, int first,
                                    int steps) {
  // Two sets of positions, so that one barrier a step will do; each is there
  // twice, so that body i's others are the n - 1 that follow it.
  __shared__ double at[2][3][64];
  __shared__ double mass[64];
  int i = threadIdx.x;
  double *mine = state + 6 * i;
  double x = mine[0], y = mine[1], z = mine[2];
  double vx = mine[3], vy = mine[4], vz = mine[5];
  double sx = start[2 * i], sy = start[2 * i + 1], before = 0;
  int turn = turns[i];
  double when = last[i];
  mass[i] = mass[i + n] = gm[i];
  for (int step = 0; step <= steps; step++) {
    double(*p)[64] = at[step & 1];
    p[0][i] = p[0][i + n] = x;
    p[1][i] = p[1][i + n] = y;
    p[2][i] = p[2][i + n] = z;
    __syncthreads();

    // The angle from the start has the sign of the cross product `across`; at
    // the start itself rounding may give that either sign.
    double dx = x - p[0][0], dy = y - p[1][0];
    double across = first + step == 0 ? 0 : sx * dy - sy * dx;
    if (step > 0 && before < 0 && across >= 0 && sx * dx + sy * dy > 0) {
      turn++;
      when = dt * (first + step - 1 + before / (before - across));
    }
    before = across;

    double ax = 0, ay = 0, az = 0;
    for (int j = i + 1; j < i + n; j++) {
      double rx = p[0][j] - x, ry = p[1][j] - y, rz = p[2][j] - z;
      double r2 = rx * rx + ry * ry + rz * rz;
      double pull = mass[j] / (r2 * sqrt(r2));
      ax += pull * rx;
      ay += pull * ry;
      az += pull * rz;
    }

    // The second half of the last step's kick and the first of the next's are
    // one, but at the ends.
    double kick = step == 0 || step == steps ? 0.5 * dt : dt;
    vx += kick * ax;
    vy += kick * ay;
    vz += kick * az;
    if (step == steps) break;
    x += dt * vx;
    y += dt * vy;
    z += dt * vz;
  }
  mine[0] = x; mine[1] = y; mine[2] = z;
  mine[3] = vx; mine[4] = vy; mine[5] = vz;
  turns[i] = turn;
  last[i] = when;
}
