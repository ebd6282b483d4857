-- Its tuning file says what the sum starts with.
-- ==
-- "tuned" input { 1i64 [1i64, 2i64] } output { [8i64, 9i64] }
-- structure { Screma 1 }
-- structure gpu-mem { Alloc 1 }

entry main (x: i64) (ys: []i64) = map (+ #[param(start)] x) ys
