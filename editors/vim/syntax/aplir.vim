" Textual IR of apl (docs/ir.md).
if exists("b:current_syntax")
  finish
endif
syntax keyword aplirKeyword stage of entry constant constants fun let in loop for while do if then else choose when by return returns reduce red scan commutative exists convert at jvp vjp
syntax keyword aplirType i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 bool unit
syntax keyword aplirOperation abs acos acosh add alloc and apply array asin asinh assert atan atan2 atanh binary cbrt ceil clz compare copy copy_tile copysign cos cosh derivative div eq erf erfc exp floor gamma get_size hypot index iota ldexp le lgamma log log10 log1p log2 lt manifest max min mod mul mul_hi ne neg nextafter not or popc pow quot rearrange rem replicate reshape round rsqrt scatter scratch screma segmap sgn shared shl shr sin sinh size sqrt sub tan tanh tile_contract total_div total_mod total_quot total_rem unary use with xor
syntax keyword aplirConstant true false
syntax match aplirComment "--.*$"
syntax match aplirAttribute "#\[[^]]*\]"
syntax match aplirNumber "\<-\=\d\+\(\.\d\+\)\=\([eE][-+]\=\d\+\)\=\([iuf]\d\+\|bf16\)\=\>"
syntax match aplirLocation "@\d\+:\d\+\(-\d\+:\d\+\)\="
syntax region aplirString start=+"+ skip=+\\\\\|\\"+ end=+"+
highlight default link aplirKeyword Keyword
highlight default link aplirType Type
highlight default link aplirOperation Function
highlight default link aplirConstant Boolean
highlight default link aplirComment Comment
highlight default link aplirAttribute PreProc
highlight default link aplirNumber Number
highlight default link aplirLocation SpecialComment
highlight default link aplirString String
let b:current_syntax = "aplir"
