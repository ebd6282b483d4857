-- A library: what is local stays here, what it opens for others is theirs too.
import "lib/github.com/example/stack/stack"

open import "numbers"

local def hidden (x: i64) : i64 = x * 100

module counter : {
  type t
  val zero : t
  val next : t -> t
  val value : t -> i64
} = {
  type t = i64
  def zero : t = 0
  def next (x: t) : t = x + step
  def value (x: t) : i64 = hidden x
}

def pushed (x: i32) : i32 = stack.top (stack.push x (stack.push 1 stack.empty))
