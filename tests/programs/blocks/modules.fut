-- Modules are evaluated when a program is compiled: opaque types, parametric modules applied several times, modules that
-- are opened, and files that are imported.
import "../imported/shapes"
module numbers = import "../imported/numbers"

-- ==
-- entry: imports
-- input { 4i32 } output { 12i32 12i32 900i64 }
entry imports (x: i32) : (i32, i32, i64) =
  (pushed x, numbers.triple x, counter.(value (next (next (next zero)))))

module type monoid = {
  type t
  val zero : t
  val (<>) : t -> t -> t
}

module folds (M: monoid) = {
  def fold [n] (xs: [n]M.t) : M.t = reduce (M.<>) M.zero xs
  def prefixes [n] (xs: [n]M.t) = scan (M.<>) M.zero xs
  def twice (x: M.t) = M.(x <> x)
}

module add : monoid with t = i32 = {
  type t = i32
  def zero : t = 0
  def (<>) = (i32.+)
}
module both (A: monoid) (B: monoid) : monoid with t = (A.t, B.t) = {
  type t = (A.t, B.t)
  def zero = (A.zero, B.zero)
  def (a, b) <> (c, d) = ((a A.<> c), (b B.<> d))
}
module largest (P: real) = {
  type t = P.t
  def zero = P.lowest
  def (<>) = P.max
}

module sums = folds add
module statistics = folds (both add (largest f64))

-- ==
-- entry: applied
-- input { [1i32, 2i32, 4i32] [0.5, 7.5, 2.5] } output { 7i32 [1i32, 3i32, 7i32] 7i32 7.5 8i32 }
entry applied [n] (xs: [n]i32) (ys: [n]f64) : (i32, [n]i32, i32, f64, i32) =
  let (s, m) = statistics.fold (zip xs ys)
  in (sums.fold xs, sums.prefixes xs, s, m, sums.twice (i32.maximum xs))

-- Sizes of module types, local modules, modules of modules, functions of modules as arguments.
module vectors (P: {val n : i64}) = {
  type vector = [P.n]f32
  def ones : vector = replicate P.n 1
  def dot (a: vector) (b: vector) : f32 = f32.sum (map2 (*) a b)
}
module four = vectors {
  local def two : i64 = 2
  def n : i64 = two + two
}
module apply (F: (P: {val n : i64}) -> {val ones : [P.n]f32}) = F {def n : i64 = 3}
module three = apply vectors
module outer = {
  module inner = {
    open four
    def half = dot (map (/ 2) ones)
  }
}

-- ==
-- entry: nested
-- input { 2f32 } output { 4f32 8f32 3f32 4i64 }
entry nested (x: f32) : (f32, f32, f32, i64) =
  let v = map (* x) four.ones
  in (outer.inner.half v, four.dot v outer.inner.ones, f32.sum three.ones, length v)

-- Abstract types with parameters, and sizes that nobody outside knows.
module type bag = {
  type~ bag 'a
  val empty 'a : () -> bag a
  val insert 'a : a -> bag a -> bag a
  val size 'a : bag a -> i64
  val sum : bag i32 -> i32
}
module list_bag : bag = {
  type~ bag 'a = []a
  def empty () = []
  def insert x xs = [x] ++ xs
  def size = length
  def sum = i32.sum
}

-- ==
-- entry: bags
-- input { 5i32 } output { 2i64 11i32 }
entry bags (x: i32) : (i64, i32) =
  let b = list_bag.(insert x (insert (x + 1) (empty ())))
  in (list_bag.size b, list_bag.sum b)

-- A parametric module that takes another one, and says so by its type.
module type twice_applied = (G: (X: {val z: i32}) -> {val r: i32}) -> {val s: i32}
module apply_to_seven : twice_applied = \(G: (X: {val z: i32}) -> {val r: i32}) -> {
  module a = G {def z = 7i32}
  def s = a.r
}
module next_of (X: {val z: i32}) = {def r = X.z + 1}
module eight = apply_to_seven next_of

-- ==
-- entry: of_parametric
-- input { 2i32 } output { 10i32 }
entry of_parametric (x: i32) : i32 = eight.s + x
