-- Constants that are computed once for each context: tables made by maps, loops and scans, literals, arrays whose size
-- nobody knows before they are there, numbers made of many elements, constants of other constants and of modules.
def table : [1000]i32 = map (\i -> i32.i64 (i * i % 97)) (iota 1000)

def literal : [40]i64 =
  [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4, 1, 9,
   7]

def sums : [40]i64 = scan (+) 0 literal

def total : i64 = i64.sum sums

-- Its size is that of no other array.
def primes = filter (\n -> n > 1 && all (\d -> n % d != 0 || d == n) (map (+ 2) (iota (i64.max 0 (n - 2))))) (iota 101)

def squares : [64]i64 =
  let start = replicate 64 0
  in loop xs = start for i < 64 do xs with [i] = if i == 0 then 1 else xs[i - 1] + i

def pairs : [50](i32, bool) = map (\i -> (table[i * 3], literal[i % 40] > 4)) (iota 50)

def scaled : [10][100]i32 = unflatten (map (* 2) table :> [10 * 100]i32)

-- Few elements stay where they are used.
def few : [3]i64 = [10, 20, 30]

def unused : [1000]i32 = map (/ 0) table

module type store = {
  type t
  val start : t
  val put : *t -> i64 -> i64 -> *t
  val get : t -> i64 -> i64
}

module array_store : store = {
  type t = [100]i64
  def start : t = map (\i -> i * 2) (iota 100)
  def put (xs: *t) (i: i64) (x: i64) : *t = xs with [i] = x
  def get (xs: t) (i: i64) = xs[i]
}

module with_table (P: {val size : i64 val f : i64 -> i64}) = {
  def entries = map P.f (iota (i64.min 500 P.size))
  def find (i: i64) = entries[i]
}

module cubes = with_table {
  def size : i64 = 77
  def f (i: i64) = i * i * i
}

-- ==
-- entry: read
-- input { [0i64, 1i64, 999i64, 500i64] } output { [0i32, 1i32, 65i32, 31i32] }
-- input { empty([0]i64) } output { empty([0]i32) }
entry read [n] (is: [n]i64) : [n]i32 = map (\i -> table[i]) is

-- ==
-- entry: whole
-- input { } output { 47840i64 3i64 [0i32, 2i32] }
entry whole : (i64, i64, [2]i32) = (i64.sum (map i64.i32 table), literal[0], scaled[0, :2])

-- ==
-- entry: number
-- input { 1i64 } output { 3832i64 195i64 }
-- input { 3i64 } output { 3834i64 197i64 }
entry number (x: i64) : (i64, i64) = (total + x, sums[39] + x)

-- ==
-- entry: below
-- input { 30i64 } output { [2i64, 3i64, 5i64, 7i64, 11i64, 13i64, 17i64, 19i64, 23i64, 29i64] 25i64 }
entry below (n: i64) : ([]i64, i64) = (filter (< n) primes, length primes)

-- ==
-- entry: changed
-- input { 2i64 5i64 } output { 5i64 4i64 1988i64 }
entry changed (i: i64) (x: i64) : (i64, i64, i64) =
  let xs = copy squares with [i] = x
  in (xs[i], squares[i], i64.sum squares / 22)

-- ==
-- entry: paired
-- input { 7i64 } output { 53i32 true }
-- input { 0i64 } output { 0i32 false }
entry paired (i: i64) : (i32, bool) = pairs[i]

-- A constant of an abstract type may be consumed; it is the same in the next call.
-- ==
-- entry: stored
-- input { 3i64 } output { 77i64 6i64 8i64 }
entry stored (i: i64) : (i64, i64, i64) =
  let a = array_store.put array_store.start i 77
  let b = array_store.start
  in (array_store.get a i, array_store.get b i, array_store.get a (i + 1))

-- ==
-- entry: cubed
-- input { 4i64 } output { 64i64 77i64 }
entry cubed (i: i64) : (i64, i64) = (cubes.find i, length cubes.entries)

-- In branches, loops, and functions of functions.
-- ==
-- entry: inside
-- input { true [1i64, 2i64] } output { [14i32, 29i32] }
-- input { false [1i64, 2i64] } output { [20i32, 30i32] }
entry inside [n] (yes: bool) (is: [n]i64) : [n]i32 =
  let at (xs: []i32) (i: i64) : i32 = xs[i]
  in if yes
     then map (\i -> loop x = 0 for k < 3 do x + at table (i + k)) is
     else map (\i -> i32.i64 few[i]) is

-- A row of one as an argument, and one as a result.
-- ==
-- entry: row
-- input { 1i64 } output { 32i32 54i32 }
entry row (i: i64) : (i32, i32) =
  let f [m] (xs: [m]i32) : i32 = xs[m - 1] - xs[0]
  in (f scaled[i], scaled[i, 3] - scaled[i, 0])

-- ==
-- entry: same
-- input { } output { [3i64, 4i64, 8i64, 9i64, 14i64, 23i64, 25i64, 31i64, 36i64, 39i64, 44i64, 52i64, 61i64, 68i64, 77i64, 80i64, 82i64, 85i64, 93i64, 97i64, 103i64, 105i64, 111i64, 115i64, 118i64, 121i64, 129i64, 132i64, 134i64, 141i64, 150i64, 155i64, 155i64, 157i64, 165i64, 173i64, 177i64, 178i64, 187i64, 194i64] }
entry same : [40]i64 = sums

-- Derivatives take constants for what they are.
-- ==
-- entry: slope
-- input { 2.0 } output { 338350.0 }
def weights : [100]f64 = map (\i -> f64.i64 ((i + 1) * (i + 1))) (iota 100)

entry slope (x: f64) : f64 = vjp (\y -> f64.sum (map (* y) weights)) x 1.0
