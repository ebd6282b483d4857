-- Abbreviations with type and size parameters, lifted ones, sizes that only exist once a function is applied.
type pair 'a 'b = {fst: a, snd: b}
type square [n] 'a = [n][n]a
type~ list 'a = []a
type^ endo 'a = a -> a
type^ stack 'a = {push: a -> i32, zero: i32}

def swap 'a 'b (p: pair a b) : pair b a = {fst = p.snd, snd = p.fst}

-- ==
-- entry: pairs
-- input { [1i32, 2i32] [true, false] } output { [true, false] [1i32, 2i32] }
entry pairs [n] (xs: [n]i32) (bs: [n]bool) : ([n]bool, [n]i32) =
  let ps = map2 (\x b -> swap {fst = x, snd = b}) xs bs
  in (map (.fst) ps, map (.snd) ps)

def trace_of [n] (m: square [n] i32) : i32 = i32.sum (map (\i -> m[i, i]) (iota n))
-- ==
-- entry: traces
-- input { [[1i32, 2i32], [3i32, 4i32]] } output { 5i32 }
entry traces [n] (m: square [n] i32) : i32 = trace_of m

def twice 'a (f: endo a) : endo a = \x -> f (f x)
-- ==
-- entry: functions
-- input { 5i32 } output { 11i32 12i32 }
entry functions (x: i32) : (i32, i32) =
  let s : stack i32 = {push = \y -> y + x, zero = 1}
  in (s.push (twice (* 2) 1 + s.zero + 1), twice (+ 1) (x + 5))

def evens (xs: []i32) : list i32 = filter (\x -> x % 2 == 0) xs
def halves [n] (xs: [n]i32) : ?[k].([k]i32, [n - k]i32) = let k = n / 2 in (take k xs, drop k xs :> [n - k]i32)
-- ==
-- entry: sizes
-- input { [1i32, 2i32, 3i32, 4i32, 6i32] } output { [2i32, 4i32, 6i32] [1i32, 2i32, 3i32, 4i32, 6i32] 3i64 }
entry sizes [n] (xs: [n]i32) : ([]i32, [n]i32, i64) =
  let (a, b) = halves xs
  in (evens xs, a ++ b, length b)
