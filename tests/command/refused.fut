-- A program that must not compile.
-- ==
-- error: expected f32.*got i32

def main (x: i32) : f32 = x
