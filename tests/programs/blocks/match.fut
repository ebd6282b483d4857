-- `match` on numbers, tuples, records and constructors, also inside of maps, loops and in other matches.
-- ==
-- entry: numbers
-- input { [0i32, 1i32, 2i32, -3i32, 7i32] } output { [10i32, 20i32, 30i32, 40i32, 50i32] }
entry numbers [n] (xs: [n]i32) : [n]i32 =
  map (\x -> match x
             case 0 -> 10
             case 1 -> 20
             case 2 -> 30
             case -3 -> 40
             case _ -> 50) xs

-- ==
-- entry: tuples
-- input { [true, true, false, false] [1i64, 2i64, 1i64, 2i64] } output { [1i64, 12i64, 3i64, 3i64] }
entry tuples [n] (bs: [n]bool) (xs: [n]i64) : [n]i64 =
  map2 (\b x -> match (b, {x, y = x + 10})
                case (true, {x = 1, y = _}) -> x
                case (true, {x = _, y}) -> y
                case (false, _) -> 3) bs xs

-- ==
-- entry: floats
-- input { [0.5f32, 1.5f32, -2f32] } output { [1i32, 2i32, 3i32] }
entry floats (xs: []f32) : []i32 = map (\x -> match x case 0.5 -> 1 case -2 -> 3 case _ -> 2) xs

type shape = #circle f32 | #box f32 f32 | #nothing

def area (s: shape) : f32 =
  match s
  case #circle r -> 3 * r * r
  case #box a b -> a * b
  case #nothing -> 0

def shape_of (k: i64) (x: f32) : shape =
  match k case 0 -> #circle x case 1 -> #box x (x + 1) case _ -> #nothing

-- ==
-- entry: areas
-- input { [0i64, 1i64, 2i64, 1i64] [2f32, 2f32, 2f32, 5f32] } output { [12f32, 6f32, 0f32, 30f32] 48f32 }
entry areas [n] (ks: [n]i64) (xs: [n]f32) : ([n]f32, f32) =
  let shapes = map2 shape_of ks xs
  in (map area shapes, f32.sum (map area shapes))

-- Only those that fit; equal ones.
-- ==
-- entry: filtered
-- input { [0i64, 1i64, 2i64, 1i64] [2f32, 2f32, 2f32, 5f32] } output { 2i64 3i64 }
entry filtered (ks: []i64) (xs: []f32) : (i64, i64) =
  let shapes = map2 shape_of ks xs
  let is_box (s: shape) = match s case #box _ _ -> true case _ -> false
  in (length (filter is_box shapes), length (filter (!= #circle 2) shapes))

type option 'a = #none | #some a

def get 'a (default: a) (o: option a) : a = match o case #none -> default case #some x -> x

def first 'a [n] (p: a -> bool) (xs: [n]a) : option a =
  loop found = #none for x in xs do
    match found
    case #some _ -> found
    case #none -> if p x then #some x else #none

-- ==
-- entry: options
-- input { [1i32, 5i32, 8i32] } output { 8i32 -1i32 14i32 }
entry options (xs: []i32) : (i32, i32, i32) =
  let total (o: option (i32, option i32)) =
    match o
    case #none -> 0
    case #some (x, #none) -> x
    case #some (x, #some y) -> x + y
  in (get (-1) (first (> 6) xs), get (-1) (first (> 9) xs), total (#some (6, first (> 6) xs)))

-- Arrays in payloads, of sizes that are known and that are not.
type text [n] = #one ([n]i32) | #two ([n]i32) ([n]i32) | #no

def text_sum [n] (t: text [n]) : i32 =
  match t
  case #one xs -> i32.sum xs
  case #two xs ys -> i32.sum (map2 (*) xs ys)
  case #no -> -1

-- ==
-- entry: payload_arrays
-- input { [1i32, 2i32, 3i32] 0i32 } output { 6i32 }
-- input { [1i32, 2i32, 3i32] 1i32 } output { 14i32 }
-- input { [1i32, 2i32, 3i32] 2i32 } output { -1i32 }
entry payload_arrays [n] (xs: [n]i32) (k: i32) : i32 =
  let t : text [n] = match k case 0 -> #one xs case 1 -> #two xs xs case _ -> #no
  in text_sum t

-- What only one case knows leaves the match as an unknown size.
-- ==
-- entry: sizes
-- input { 3i64 } output { [0i64, 1i64, 2i64] }
-- input { 0i64 } output { [7i64] }
entry sizes (n: i64) : []i64 = match n case 0 -> [7] case m -> iota m

-- A pattern that always matches may stand in a `let` and in parameters.
type wrapped 'a = #wrapped a
def unwrap 'a (#wrapped x : wrapped a) : a = x
-- ==
-- entry: irrefutable
-- input { 5i32 } output { 11i32 }
entry irrefutable (x: i32) : i32 =
  let (#wrapped y) = #wrapped (x + 1) : wrapped i32
  in y + unwrap (#wrapped x)
