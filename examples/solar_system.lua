-- The solar system: Sun, planets and Pluto pull at one another for 250 years; the
-- energy should stay what it was, and each planet come round in its known period.
--
--   tpstream examples/solar_system.lua [-y YEARS] [-d DAYS]
--
-- -y: Julian years to compute (default 250: once round for Pluto); -d: days a step
-- (default 0.125). Leapfrog in double precision, one block with a thread a body, many
-- steps a launch. The error of a period grows with the square of the step, and
-- Mercury's is the largest: 0.00003 of it for 0.125 days.
--
-- A period is the mean time between returns to the longitude of the start, seen from
-- the Sun, over all whole revolutions. No two revolutions of an outer planet are
-- quite alike, and the known periods are means over millennia: Neptune's and Pluto's
-- one revolution each agrees to some ten-thousandths.
local tp = require "tpstream"

local HERE = (arg and arg[0] or ""):match "^(.*/)" or ""
local YEAR = 365.25 -- days
local AU = 149597870.7 -- km
local LAUNCH_STEPS = 10000

-- State vectors: JPL Horizons, 2000-Jan-01 12:00 TDB (J2000), from the barycentre of
-- the solar system, axes of the ICRF; km and km/s. gm: G times mass in km^3/s^2, JPL's
-- DE431 (NAIF's gm_de431.tpc). known: JPL's planetary physical parameters, sidereal
-- orbit period in Julian years. A body that names a planet is its moon: planet and
-- moons go as one, from their centre of mass (Charon moves Pluto's velocity by half
-- a percent, and that its period by more than one).
local BODIES = {
  { "Sun", gm = 132712440041.93938,
    -1.067598502264559e+06, -3.959890535950128e+05, -1.380711260212289e+05,
    9.312570119052345e-03, -1.170150735349599e-02, -5.251247980405208e-03 },
  { "Mercury", gm = 22031.780000000021, known = 0.2408467,
    -2.052932489502387e+07, -6.032395676436062e+07, -3.013084385588142e+07,
    3.700430445042139e+01, -8.541376874560308e+00, -8.398372276762027e+00 },
  { "Venus", gm = 324858.59200000006, known = 0.61519726,
    -1.085240925511762e+08, -7.318517883756028e+06, 3.548115911200081e+06,
    1.391218618039207e+00, -3.202951994557884e+01, -1.449708670519373e+01 },
  { "Earth", gm = 398600.43543609598, known = 1.0000174,
    -2.756663225908748e+07, 1.323614283011928e+08, 5.741864727316781e+07,
    -2.978494749707266e+01, -5.029753833589443e+00, -2.180645051457051e+00 },
  { "Mars", gm = 42828.37362069909, known = 1.8808476,
    2.069805421180782e+08, -1.863697276138850e+05, -5.667233334924674e+06,
    1.171984953383225e+00, 2.390670820059185e+01, 1.093392065180724e+01 },
  { "Jupiter", gm = 126686534.9218008, known = 11.862615,
    5.975000211076204e+08, 4.089903370182379e+08, 1.607562257323964e+08,
    -7.900547825925709e+00, 1.017187262378716e+01, 4.552503833694558e+00 },
  { "Saturn", gm = 37931207.49865224, known = 29.447498,
    9.573177601946752e+08, 9.233194830346156e+08, 3.401627860705418e+08,
    -7.421900389895590e+00, 6.098450818042330e+00, 2.837547994607634e+00 },
  { "Uranus", gm = 5793951.322279009, known = 84.016846,
    2.157907443424685e+09, -1.871306925654410e+09, -8.501067004044402e+08,
    4.646586245786795e+00, 4.251109136832371e+00, 1.796125740653137e+00 },
  { "Neptune", gm = 6835099.502439672, known = 164.79132,
    2.513978732441684e+09, -3.438170119934093e+09, -1.469851527291742e+09,
    4.474589638729705e+00, 2.876586917524307e+00, 1.065774083588457e+00 },
  { "Pluto", gm = 869.6138177608748, known = 247.92065,
    -1.478398652818382e+09, -4.185974305810293e+09, -8.608762873211222e+08,
    5.269182277842031e+00, -1.951448789092390e+00, -2.209323187225042e+00 },
  { "Moon", of = "Earth", gm = 4902.8000661637961,
    -2.785824064408012e+07, 1.320947114679507e+08, 5.734254478723364e+07,
    -2.914141611066932e+01, -5.695841519211172e+00, -2.481970755642522e+00 },
  { "Io", of = "Jupiter", gm = 5959.916033410404,
    5.978997353200475e+08, 4.091046952612020e+08, 1.608174285382742e+08,
    -1.329763136049905e+01, 2.514086864240054e+01, 1.159321828179934e+01 },
  { "Europa", of = "Jupiter", gm = 3202.738774922892,
    5.969387767073832e+08, 4.086708427457156e+08, 1.605981398898841e+08,
    -4.382509121463567e-01, -4.656896931282102e-01, -2.962594107112038e-01 },
  { "Ganymede", of = "Jupiter", gm = 9887.834453334144,
    5.966786760610297e+08, 4.083752515967098e+08, 1.604518868939491e+08,
    -9.129101828440112e-01, 2.613952354620796e+00, 1.024693705177035e+00 },
  { "Callisto", of = "Jupiter", gm = 7179.289361397270,
    5.978251007731776e+08, 4.106639946945100e+08, 1.615524232894795e+08,
    -1.597352015281783e+01, 1.155366103133486e+01, 5.087885568805900e+00 },
  { "Titan", of = "Saturn", gm = 8978.138845307376,
    9.563709574229251e+08, 9.241435814225655e+08, 3.401898682713186e+08,
    -1.098324450470318e+01, 2.053204296693298e+00, 3.421833836232645e+00 },
  { "Titania", of = "Uranus", gm = 226.9437003741248,
    2.157844188422024e+09, -1.871178926993319e+09, -8.505186273340455e+08,
    1.121176293276712e+00, 4.848369486703577e+00, 2.513794150974731e+00 },
  { "Oberon", of = "Uranus", gm = 205.3234302535623,
    2.157346847225502e+09, -1.871161992149461e+09, -8.501794360734080e+08,
    4.071759963101220e+00, 3.549166708213239e+00, 4.813583945624575e+00 },
  { "Triton", of = "Neptune", gm = 1427.598140725034,
    2.513773059451379e+09, -3.438160096410603e+09, -1.469562649220356e+09,
    7.465427734359407e+00, 5.356750131978635e+00, 3.109098480171945e+00 },
  { "Charon", of = "Pluto", gm = 105.8799888601881,
    -1.478405490688186e+09, -4.185983102456722e+09, -8.608924110481671e+08,
    5.124855992527527e+00, -2.067438053905884e+00, -2.084865844987803e+00 },
}
local OBLIQUITY = math.rad(84381.448 / 3600) -- of the ecliptic of J2000

local function fail(format, ...)
  error(format:format(...), 0)
end

-- The bodies ---------------------------------------------------------------

-- Position and velocity by axes of the ecliptic, in au and au/day.
local function convert(body)
  local c, s, day = math.cos(OBLIQUITY), math.sin(OBLIQUITY), 86400.0
  local _, x, y, z, vx, vy, vz = table.unpack(body)
  return { x / AU, (c * y + s * z) / AU, (c * z - s * y) / AU,
    vx / AU * day, (c * vy + s * vz) / AU * day, (c * vz - s * vy) / AU * day }
end

-- Planets (and the Sun), each with its moons; names, state: six numbers a body,
-- from the centre of mass of all, which rests; gm: au^3/day^2; known: days.
local function prepare()
  local names, known, gm, sums, total = {}, {}, {}, {}, {}
  local function add(to, mass, vector)
    for k = 1, 6 do to[k] = (to[k] or 0) + mass * vector[k] end
  end
  for _, body in ipairs(BODIES) do
    local i = names[body.of or body[1]] or #names + 1
    local mass, vector = body.gm * 86400.0 ^ 2 / AU ^ 3, convert(body)
    if not body.of then
      names[i], names[body[1]], known[i] = body[1], i, (body.known or 0) * YEAR
      gm[i], sums[i] = 0, {}
    end
    gm[i] = gm[i] + mass
    add(sums[i], mass, vector)
    add(total, mass, vector)
  end
  local all, state = 0, {}
  for i = 1, #gm do all = all + gm[i] end
  for i = 1, #gm do
    for k = 1, 6 do state[#state + 1] = sums[i][k] / gm[i] - total[k] / all end
  end
  return names, state, gm, known
end

-- Total energy and angular momentum, both times G.
local function invariants(state, gm)
  local energy, lx, ly, lz = 0, 0, 0, 0
  for i = 1, #gm do
    local x, y, z, vx, vy, vz = table.unpack(state, 6 * i - 5, 6 * i)
    energy = energy + 0.5 * gm[i] * (vx * vx + vy * vy + vz * vz)
    lx = lx + gm[i] * (y * vz - z * vy)
    ly = ly + gm[i] * (z * vx - x * vz)
    lz = lz + gm[i] * (x * vy - y * vx)
    for j = 1, i - 1 do
      local dx, dy, dz = x - state[6 * j - 5], y - state[6 * j - 4],
        z - state[6 * j - 3]
      energy = energy - gm[i] * gm[j] / (dx * dx + dy * dy + dz * dz) ^ 0.5
    end
  end
  return energy, { lx, ly, lz }
end

-- |now - was| / |was| of two vectors.
local function change(now, was)
  local difference, size = 0, 0
  for k = 1, #was do
    difference = difference + (now[k] - was[k]) ^ 2
    size = size + was[k] ^ 2
  end
  return (difference / size) ^ 0.5
end

-- The run ------------------------------------------------------------------

-- Compiles solar_system.cu, or takes its PTX where there is no compiler.
local function load_module()
  local ok, result = pcall(tp.compile_file, HERE .. "solar_system.cu")
  if ok then return result end
  if type(result) ~= "table" or result.code ~= "TPSTREAM_ERROR_NO_COMPILER" then
    error(result, 0)
  end
  return tp.load(HERE .. "solar_system.ptx")
end

local function write_ptx()
  local module = tp.compile_file(HERE .. "solar_system.cu", { arch = 75,
    lineinfo = false })
  local file <close> = assert(io.open(HERE .. "solar_system.ptx", "wb"))
  file:write(module:ptx())
end

-- Makes `steps` steps of dt days. Returns each body's revolutions, the time of the
-- last one's end, the drifts { worst, at the end } and the number of launches.
local function integrate(state, gm, dt, steps)
  local n = #gm
  local start = {}
  for i = 1, n do
    start[2 * i - 1] = state[6 * i - 5] - state[1]
    start[2 * i] = state[6 * i - 4] - state[2]
  end
  local d_state = tp.buffer("float64", state)
  local d_gm, d_start = tp.buffer("float64", gm), tp.buffer("float64", start)
  local d_turns, d_last = tp.zeros("int32", n), tp.zeros("float64", n)
  local leapfrog = load_module():kernel "leapfrog"
  local energy, momentum = invariants(state, gm)
  local drift = { energy = { 0, 0 }, momentum = { 0, 0 } }
  local function note(kind, value)
    drift[kind] = { math.max(drift[kind][1], value), value }
  end
  local launches = 0
  for first = 0, steps - 1, LAUNCH_STEPS do
    leapfrog:launch({ grid = 1, block = n }, d_state, d_gm, d_start, d_turns,
      d_last, n, dt, first, math.min(LAUNCH_STEPS, steps - first))
    local now, l = invariants(d_state:read(), gm)
    note("energy", math.abs((now - energy) / energy))
    note("momentum", change(l, momentum))
    launches = launches + 1
  end
  return d_turns:read(), d_last:read(), drift, launches
end

local function option_number(name, text, least, most)
  local value = tonumber(text)
  if not value or not (value >= least and value <= most) then
    fail("%s needs a number from %g to %g, got '%s'", name, least, most,
      tostring(text))
  end
  return value
end

local function parse_arguments(args)
  local years, days = 250, 0.125
  for i = 1, #args, 2 do
    if args[i] == "-y" then
      years = option_number("-y", args[i + 1], 0.01, 10000)
    elseif args[i] == "-d" then
      days = option_number("-d", args[i + 1], 0.001, 20)
    else
      fail("unknown option '%s' (there are -y YEARS and -d DAYS)", args[i])
    end
  end
  return years, days
end

local function main(args)
  if args[1] == "--ptx" then return write_ptx() end
  local years, dt = parse_arguments(args)
  local steps = math.max(1, math.floor(years * YEAR / dt + 0.5))
  if steps > 1 << 30 then
    fail("%d steps (%d are the most): fewer years or longer steps", steps,
      1 << 30)
  end
  local names, state, gm, known = prepare()
  local timer = tp.timer()
  local turns, last, drift, launches = integrate(state, gm, dt, steps)
  print(("%d bodies, %g years from J2000 in %d steps of %g days")
    :format(#names, years, steps, dt))
  print(("%d launches, %.2f s on %s"):format(launches, timer:stop() / 1000,
    tp.current_device():name()))
  print(("energy drift:           %8.1e at most, %8.1e at the end")
    :format(table.unpack(drift.energy)))
  print(("angular momentum drift: %8.1e at most, %8.1e at the end")
    :format(table.unpack(drift.momentum)))
  print "          revolutions   period, days          known   difference"
  for i = 2, #names do
    local period, off = "-", "-"
    if turns[i] > 0 then
      local days = last[i] / turns[i]
      period = ("%.4f"):format(days)
      off = ("%+.1e"):format(days / known[i] - 1)
    end
    print(("%-9s %11d %14s %14.4f %12s"):format(names[i], turns[i],
      period, known[i], off))
  end
end

local ok, message = pcall(main, arg or {})
if not ok then
  io.stderr:write("solar_system: ", tostring(message), "\n")
  os.exit(1, true)
end
