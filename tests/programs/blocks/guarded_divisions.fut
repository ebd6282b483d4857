-- Sums of quotients and remainders whose divisors are never 0: contractions, also with the one quotient that wraps. A
-- division that is not guarded fails as before.
def contract [n] [m] [q] (f: i32 -> i32 -> i32) (A: [n][q]i32) (B: [m][q]i32): [n][m]i32 =
  map (\xs -> map (\ys -> i32.sum (map2 f xs ys)) B) A

-- ==
-- entry: quotients
-- input { [[7i32, -7i32, -2147483648i32, 5i32, 0i32], [-2i32, 9i32, 8i32, -5i32, 2i32]] [[2i32, 0i32, -1i32, -3i32, 4i32], [0i32, 3i32, -2i32, 0i32, -1i32], [-1i32, -1i32, 1i32, 7i32, 0i32]] }
-- output { [[-2147483646i32, 1073741822i32, -2147483648i32], [-8i32, -3i32, 1i32]] }
entry quotients [n] [m] [q] (A: [n][q]i32) (B: [m][q]i32) = contract (\x y -> if y == 0 then 0 else x // y) A B

-- ==
-- entry: floors
-- input { [[7i32, -7i32, -2147483648i32, 5i32, 0i32], [-2i32, 9i32, 8i32, -5i32, 2i32]] [[2i32, 0i32, -1i32, -3i32, 4i32], [0i32, 3i32, -2i32, 0i32, -1i32], [-1i32, -1i32, 1i32, 7i32, 0i32]] }
-- output { [[2147483642i32, 1073741833i32, -2147483648i32], [1i32, -10i32, 2i32]] }
entry floors [n] [m] [q] (A: [n][q]i32) (B: [m][q]i32) = contract (\x y -> if y != 0 then x / y else x) A B

-- ==
-- entry: remainders
-- input { [[7i32, -7i32, -2147483648i32, 5i32, 0i32], [-2i32, 9i32, 8i32, -5i32, 2i32]] [[2i32, 0i32, -1i32, -3i32, 4i32], [0i32, 3i32, -2i32, 0i32, -1i32], [-1i32, -1i32, 1i32, 7i32, 0i32]] }
-- output { [[4i32, 6i32, 8i32], [5i32, 4i32, 5i32]] }
entry remainders [n] [m] [q] (A: [n][q]i32) (B: [m][q]i32) = contract (\x y -> if 0 < y then x % y else 1) A B

-- ==
-- entry: by_at_least_one
-- input { [[7i32, -7i32, -2147483648i32, 5i32, 0i32], [-2i32, 9i32, 8i32, -5i32, 2i32]] [[2i32, 0i32, -1i32, -3i32, 4i32], [0i32, 3i32, -2i32, 0i32, -1i32], [-1i32, -1i32, 1i32, 7i32, 0i32]] }
-- output { [[-2147483647i32, -2147483638i32, -2147483648i32], [11i32, 6i32, 17i32]] }
entry by_at_least_one [n] [m] [q] (A: [n][q]i32) (B: [m][q]i32) = contract (\x y -> x // i32.max y 1) A B

-- ==
-- entry: both
-- input { [[7i32, -7i32, -2147483648i32, 5i32, 0i32], [-2i32, 9i32, 8i32, -5i32, 2i32]] [[2i32, 0i32, -1i32, -3i32, 4i32], [0i32, 3i32, -2i32, 0i32, -1i32], [-1i32, -1i32, 1i32, 7i32, 0i32]] }
-- output { [[2i32, -3i32, 4i32], [-1i32, -2i32, -6i32]] }
entry both [n] [m] [q] (A: [n][q]i32) (B: [m][q]i32) = contract (\x y -> if y != 0 && x != 3 then x %% y else -1) A B

-- ==
-- entry: unguarded
-- input { [[7i32, -7i32, -2147483648i32, 5i32, 0i32], [-2i32, 9i32, 8i32, -5i32, 2i32]] [[2i32, 0i32, -1i32, -3i32, 4i32], [0i32, 3i32, -2i32, 0i32, -1i32], [-1i32, -1i32, 1i32, 7i32, 0i32]] }
-- error: division by zero
entry unguarded [n] [m] [q] (A: [n][q]i32) (B: [m][q]i32) = contract (\x y -> if y == 1 then 0 else x / y) A B
