-- As `futhark pkg` lays packages out.
import "../../../../numbers"

module type stack = {
  type stack
  val empty : stack
  val push : i32 -> stack -> stack
  val top : stack -> i32
}

module stack : stack = {
  type stack = (i32, i32)
  def empty : stack = (0, 0)
  def push (x: i32) (s: stack) : stack = (triple x, s.0)
  def top (s: stack) : i32 = s.0
}
