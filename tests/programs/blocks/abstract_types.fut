-- Types that a module type hides: their sizes change in loops, `with` makes more of them than the module type says,
-- and parametric modules take functions that give fresh arrays of them.

module type permutation = {
  type t [n]
  val id : (n: i64) -> t [n]
  val add [m] [n] : t [m] -> t [n] -> t [m + n]
  val get [n] : t [n] -> [n]i64
}

module permutation : permutation = {
  type t [n] = [n]i64
  def id (n: i64) : t [n] = reverse (iota n)
  def add [m] [n] (p: t [m]) (q: t [n]) : t [m + n] = p ++ map (+ m) q
  def get [n] (p: t [n]) : [n]i64 = p
}

-- ==
-- entry: grown
-- input { 3i64 2i64 } output { [1i64, 0i64, 3i64, 2i64, 5i64, 4i64] }
-- input { 0i64 2i64 } output { empty([0]i64) }
entry grown (blocks: i64) (size: i64) : []i64 =
  let p =
    loop p = permutation.id 0
    for k < blocks do
      permutation.add (p :> permutation.t [k * size]) (permutation.id size)
  in permutation.get p

-- One of two sizes, in a record of an abstract type.
module pairs : { type t [n] 'a val make 'a : (n: i64) -> a -> t [n] a val sum [n] : t [n] i64 -> i64 } = {
  type t [n] 'a = {index: [n]i64, value: a}
  def make 'a (n: i64) (value: a) : t [n] a = {index = iota n, value}
  def sum [n] (p: t [n] i64) : i64 = p.value + i64.sum p.index
}

-- ==
-- entry: either
-- input { true 4i64 } output { 16i64 }
-- input { false 4i64 } output { 38i64 }
entry either (short: bool) (n: i64) : i64 =
  pairs.sum (if short then pairs.make n 10 else pairs.make (n * 2) 10)

-- A context whose sizes vary, where the module type of the result does not say so.
module type key = {
  type~ ctx
  val hash : ctx -> i64 -> i64
}

module type table = {
  type ctx
  type~ table
  val build [n] : ctx -> [n]i64 -> table
  val has : ctx -> table -> i64 -> bool
}

module mk_inner (K: key) : table with ctx = K.ctx = {
  type~ ctx = K.ctx
  type~ table = ?[n].[n]i64
  def build [n] (c: ctx) (keys: [n]i64) : table = map (K.hash c) keys
  def has (c: ctx) (t: table) (k: i64) : bool = any (== K.hash c k) t
}

module mk_outer (K: key) : table with ctx = K.ctx = {
  module inner = mk_inner K
  type ctx = inner.ctx
  type~ table = {inner: inner.table}
  def build [n] (c: ctx) (keys: [n]i64) : table = {inner = inner.build c keys}
  def has (c: ctx) (t: table) (k: i64) : bool = inner.has c t.inner k
}

module sums = mk_outer {
  type~ ctx = []i64
  def hash (c: ctx) (x: i64) = x + i64.sum c
}

-- ==
-- entry: contexts
-- input { [1i64, 2i64] [10i64, 20i64] 20i64 } output { true }
-- input { [1i64, 2i64] [10i64, 20i64] 21i64 } output { false }
entry contexts (c: []i64) (keys: []i64) (x: i64) : bool = sums.has c (sums.build c keys) x

-- A parametric module whose parameter gives unique arrays.
module type fresh = {
  type element
  val all : (n: i64) -> *[n]element
  val set [n] : *[n]element -> i64 -> i64 -> *[n]element
  val to_i64 : element -> i64
}

module mk_user (F: fresh) = {
  def last (n: i64) (x: i64) : i64 =
    let a = F.all n
    let b = F.set a (n - 1) x
    in F.to_i64 b[n - 1] + i64.sum (map F.to_i64 b)
}

module user = mk_user {
  type element = i64
  def all (n: i64) : *[n]element = iota n
  def set [n] (a: *[n]element) (i: i64) (x: i64) : *[n]element = a with [i] = x
  def to_i64 (x: element) = x
}

-- ==
-- entry: unique_results
-- input { 4i64 7i64 } output { 17i64 }
entry unique_results (n: i64) (x: i64) : i64 = user.last n x

-- Of what is marked blank no element is looked at: here there is none.
-- ==
-- entry: blanks
-- input { 3i64 } output { [0i64, 1i64, 2i64] }
-- input { 0i64 } output { empty([0]i64) }
entry blanks (n: i64) : [n]i64 =
  let filler : (i64, f32) = #[blank] [][0]
  let room : [n](i64, f32) = #[scratch] replicate n filler
  in (unzip (scatter (copy room) (iota n) (map (\i -> (i, 1)) (iota n)))).0

-- An iteration may change the sizes that a module hides.
module type bag = { type~ t val make : (n: i64) -> t val sum : t -> i64 val grow : t -> t }
module rows : bag = {
  type~ t = ?[n].{a: [n]i64, b: [n]i64}
  def make (n: i64) : t = {a = iota n, b = map (+ 1) (iota n)}
  def sum (t: t) : i64 = i64.sum (map2 (*) t.a t.b)
  def grow (t: t) : t = let a = t.a ++ t.b in {a = a, b = map (* 2) a}
}
module optional (P: bag) : bag = {
  type~ t = #none | #some P.t
  def make (n: i64) : t = if n == 0 then #none else #some (P.make n)
  def sum (t: t) : i64 = match t case #none -> 0 case #some t -> P.sum t
  def grow (t: t) : t = match t case #none -> #none case #some t -> #some (P.grow t)
}
module pairs_of (P: bag) : bag = {
  type~ t = {x: P.t, y: P.t, k: i64}
  def make (n: i64) : t = {x = P.make n, y = P.make n, k = n}
  def sum (t: t) : i64 = P.sum t.x + 10 * P.sum t.y + t.k
  def grow (t: t) : t = {x = P.grow t.x, y = P.make t.k, k = t.k + 1}
}
module deep = optional (pairs_of (optional rows))

-- ==
-- entry: hidden_sizes
-- input { 3i64 3i64 } output { 8i64 }
-- input { 3i64 5i64 } output { 40i64 }
entry hidden_sizes (n: i64) (m: i64) : i64 = rows.sum (loop t = rows.make n for _i < 4 do rows.make (m + rows.sum t - rows.sum t))

-- ==
-- entry: hidden_sizes_while
-- input { 3i64 100i64 } output { 190i64 }
entry hidden_sizes_while (n: i64) (k: i64) : i64 = rows.sum (loop t = rows.make n while rows.sum t < k do rows.grow t)

-- ==
-- entry: hidden_sizes_of_two
-- input { 3i64 3i64 4i64 } output { 88i64 40i64 }
-- input { 2i64 5i64 3i64 } output { 38i64 20i64 }
entry hidden_sizes_of_two (n: i64) (m: i64) (k: i64) =
  let (a, b) = loop (a, b) = (rows.make n, rows.make m) for i < k do (rows.grow b, rows.make (i + 2))
  in (rows.sum a, rows.sum b)

-- ==
-- entry: hidden_sizes_nested
-- input { 0i64 3i64 } auto output
-- input { 3i64 3i64 } auto output
entry hidden_sizes_nested (n: i64) (k: i64) : i64 =
  deep.sum (loop t = deep.make n for i < k do loop t for _j < i do deep.grow t)

-- ==
-- entry: hidden_sizes_in_map
-- input { [2i64, 3, 0] 2i64 } auto output
entry hidden_sizes_in_map [m] (ns: [m]i64) (k: i64) : [m]i64 =
  map (\n -> rows.sum (loop t = rows.make n for _i < k do rows.grow t)) ns

-- Derivatives of loops that keep the sizes that a module hides.
module steps : { type~ t val of [n] : [n]f64 -> t val sum : t -> f64 val step : t -> t } = {
  type~ t = ?[n].{a: [n]f64, b: [n]f64}
  def of [n] (a: [n]f64) : t = {a, b = map (* 2) a}
  def sum (t: t) : f64 = f64.sum (map2 (*) t.a t.b)
  def step ({a, b}: t) : t = {a = map2 (*) a b, b = map2 (-) a b}
}
def after_steps [n] (k: i64) (xs: [n]f64) = steps.sum (loop t = steps.of xs for _i < k do steps.step t)

-- ==
-- entry: hidden_sizes_gradient
-- input { 2i64 [0.5, 0.25] } output { [-2.25, -0.203125] }
entry hidden_sizes_gradient [n] (k: i64) (xs: [n]f64) = vjp (after_steps k) xs 1

-- ==
-- entry: hidden_sizes_direction
-- input { 2i64 [0.5, 0.25] } output { -2.453125 }
entry hidden_sizes_direction [n] (k: i64) (xs: [n]f64) = jvp (after_steps k) xs (map (const 1) xs)
