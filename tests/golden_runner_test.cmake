# The golden runner itself: what it accepts, refuses and records.
# Run as: cmake -DGOLDEN=path/of/apl_golden -DFOLDER=scratch/folder -P golden_runner_test.cmake
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(path "${FOLDER}/sample.aplir")

set(body [==[
stage soac

entry f (xs : "[n]f32") : {"f32"}
fun f [n] (xs : [n]f32) : {f32} = {
  let {r : f32} =
    redomap(i < n, {xs},
      \{x : f32} -> { let {y : f32} = mul(x, x) in {y} },
      {commutative \{a : f32, b : f32} -> { let {c : f32} = add(a, b) in {c} }, {0.0f32}})
  in {r}
}
]==])

# expect(code regex arguments...): runs the program and looks at what it says.
function(expect code regex)
  execute_process(COMMAND "${GOLDEN}" ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE out ERROR_VARIABLE err)
  set(text "${out}${err}")
  if(NOT result EQUAL code)
    message(SEND_ERROR "apl_golden ${ARGN}: exit code ${result}, not ${code}:\n${text}")
  elseif(NOT text MATCHES "${regex}")
    message(SEND_ERROR "apl_golden ${ARGN}: no '${regex}' in:\n${text}")
  endif()
endfunction()

# One file with these directives.
function(sample directives)
  file(WRITE "${path}" "${directives}\n${body}")
endfunction()

expect(64 "no file is given")
expect(64 "no option --what" --what)
expect(0 "usage:" --help)
expect(1 "cannot be read" "${FOLDER}/none.aplir")

sample("-- Squares summed.\n-- RUN: none\n-- WANT: redomap/mul 1\n-- IDEMPOTENT\n-- SIZES: n=100")
expect(1 "nothing is recorded yet" "${path}")
expect(0 "sample.aplir: updated" --update "${path}")
expect(0 "sample.aplir: ok" "${path}")
expect(0 "sample.aplir: ok" --update "${path}")
file(READ "${path}" text)
if(NOT text MATCHES "^-- Squares summed.*\n-- OUTPUT\nstage soac\n.*in {r}\n}\n$")
  message(SEND_ERROR "not recorded as it should be:\n${text}")
endif()
# The recorded output is edited: a unified diff says so.
string(REPLACE "-- OUTPUT\nstage soac" "-- OUTPUT\nstage kernel" text "${text}")
file(WRITE "${path}" "${text}")
expect(1 "-stage kernel\n.stage soac" "${path}")
expect(0 "updated" --update "${path}")

sample("-- RUN: none\n-- WANT: redomap/mul 2")
expect(1 "WANT: redomap/mul 2: redomap/mul occurs 1 times, not 2" --update "${path}")
sample("-- WANT: redomap 1")
expect(1 "needs a line" "${path}")
sample("-- RUN: none\n-- WNAT: redomap 1")
expect(1 "sample.aplir:2:1: error: there is no directive WNAT" "${path}")
sample("-- RUN: none\n-- SIZES: n")
expect(1 "SIZES takes assignments" "${path}")
sample("-- RUN: none\n-- SIZES: q=3")
expect(1 "no entry has a size or scalar `q`" --update "${path}")
sample("-- RUN: no-such-pass")
expect(1 "command.bad-pipeline" --update "${path}")

# Expected errors are recorded too; an error of another code, or none, is a failure.
sample("-- RUN: no-such-pass\n-- ERROR: command.bad-pipeline")
expect(0 "updated" --update "${path}")
expect(0 "ok" "${path}")
sample("-- RUN: none\n-- ERROR: ir.invalid")
expect(1 "expected an error ir.invalid, but the pipeline succeeded" --update "${path}")
sample("-- RUN: none\n-- ERROR: ir.invalid\n\nlet")
expect(1 "expected an error ir.invalid, but the error is" --update "${path}")
file(WRITE "${path}" "-- RUN: none\n-- ERROR: ir.syntax\nstage gpu\n")
expect(0 "updated" --update "${path}")
file(READ "${path}" text)
if(NOT text MATCHES "-- OUTPUT\nsample.aplir:3:7: error: ")
  message(SEND_ERROR "the error is not recorded as it should be:\n${text}")
endif()
file(GLOB left "${FOLDER}/*.new")
if(left)
  message(SEND_ERROR "temporary files are left: ${left}")
endif()
