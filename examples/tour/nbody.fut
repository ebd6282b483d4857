-- Bodies that attract each other.
--
-- An array of records is kept as an array for each field, so that neighbouring threads read neighbouring numbers, and a
-- record costs nothing: `aplc opt -p soac nbody.fut` shows neither. An entry takes and gives arrays; records are made
-- and taken apart at its edge. The sum in each thread is a reduction with an operator on records.

-- ==
-- entry: step
-- "two bodies and a speck of dust" input { 0.5f32 [0.0f32, 2.0f32, 0.0f32] [0.0f32, 0.0f32, 1.0f32]
--                              [0.0f32, 0.0f32, 0.5f32] [0.0f32, 1.0f32, 0.0f32] [4.0f32, 2.0f32, 0.0f32] }
-- output { [0.1245327f32, 1.750935f32, 0.3391751f32] [0.0f32, 0.5f32, -0.02977287f32]
--          [0.2490654f32, -0.4981308f32, 0.6783501f32] [0.0f32, 1.0f32, -2.059546f32] }

-- ==
-- entry: energy
-- input { [0.0f32, 2.0f32] [0.0f32, 0.0f32] [3.0f32, 0.0f32] [4.0f32, 1.0f32] [2.0f32, 6.0f32] } output { 28.0f32 }

type vec = {x: f32, y: f32}
type body = {position: vec, velocity: vec, mass: f32}

def add (a: vec) (b: vec) : vec = {x = a.x + b.x, y = a.y + b.y}
def sub (a: vec) (b: vec) : vec = {x = a.x - b.x, y = a.y - b.y}
def scale (k: f32) (a: vec) : vec = {x = k * a.x, y = k * a.y}
def dot (a: vec) (b: vec) : f32 = a.x * b.x + a.y * b.y

-- The softening keeps a body from being torn apart by itself.
def pull (a: body) (b: body) : vec =
  let d = sub b.position a.position
  let r2 = dot d d + 0.01
  in scale (b.mass / (r2 * f32.sqrt r2)) d

def advance [n] (dt: f32) (bodies: [n]body) : [n]body =
  let acceleration a = reduce_comm add {x = 0, y = 0} (map (pull a) bodies)
  let moved a =
    let velocity = add a.velocity (scale dt (acceleration a))
    in a with velocity = velocity with position = add a.position (scale dt velocity)
  in map moved bodies

def bodies_of [n] (xs: [n]f32) (ys: [n]f32) (vxs: [n]f32) (vys: [n]f32) (masses: [n]f32) : [n]body =
  map5 (\x y vx vy mass -> {position = {x, y}, velocity = {x = vx, y = vy}, mass}) xs ys vxs vys masses

entry step [n] (dt: f32) (xs: [n]f32) (ys: [n]f32) (vxs: [n]f32) (vys: [n]f32) (masses: [n]f32)
    : ([n]f32, [n]f32, [n]f32, [n]f32) =
  bodies_of xs ys vxs vys masses
  |> advance dt
  |> map (\{position = p, velocity = v, mass = _} -> (p.x, p.y, v.x, v.y))
  |> unzip4

-- Of motion only.
entry energy [n] (xs: [n]f32) (ys: [n]f32) (vxs: [n]f32) (vys: [n]f32) (masses: [n]f32) : f32 =
  f32.sum (map (\b -> 0.5 * b.mass * dot b.velocity b.velocity) (bodies_of xs ys vxs vys masses))
