-- Two layers, each a product with a bias and max(0, x), and their gradients: the adjoints of products are products, and
-- forward derivatives go through the same layers. tests/programs/blocks/layers_of_products.fut has literal values.

def layer [n][k][m] (X: [n][k]i32) (W: [k][m]i32) (b: [m]i32) : [n][m]i32 =
  map (\x -> map2 (\w c -> i32.max 0 (i32.sum (map2 (*) x w) + c)) (transpose W) b) X

def squares [n][a][b][c] (X: [n][a]i32) (T: [n][c]i32) (W: [a][b]i32, v: [b]i32, U: [b][c]i32, u: [c]i32) : i32 =
  i32.sum (map2 (\r t -> i32.sum (map2 (\x y -> (x - y) * (x - y)) r t)) (layer (layer X W v) U u) T)

entry back [n][a][b][c] (X: [n][a]i32) (W: [a][b]i32) (v: [b]i32) (U: [b][c]i32) (u: [c]i32) (T: [n][c]i32)
    : (i32, [a][b]i32, [b]i32, [b][c]i32, [c]i32) =
  let (y, (dW, dv, dU, du)) = vjp2 (squares X T) (W, v, U, u) 1
  in (y, dW, dv, dU, du)

-- How the loss changes with the input, in the direction T of a second input of its shape.
entry along [n][a][b] (X: [n][a]i32) (D: [n][a]i32) (W: [a][b]i32) (v: [b]i32) (U: [b][a]i32) (u: [a]i32) : (i32, i32) =
  jvp2 (\X -> squares X D (W, v, U, u)) X D
