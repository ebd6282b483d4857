# `aplc explain` on one screen: programs whose reasons are known, and what it says where nothing is known.
# Run as: cmake -DAPLC=... -DPROGRAMS=... -DEXAMPLES=... -DFOLDER=... -P explain_test.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(FOLDER_OF_RUNS "${FOLDER}")
include("${CMAKE_CURRENT_LIST_DIR}/run_aplc.cmake")

# The output has at most 25 lines.
function(want_screen)
  string(REPLACE ";" "," output "${output}")  # which would end an element of a list
  string(REGEX MATCHALL "[^\n]+" lines "${output}")
  list(LENGTH lines count)
  if(count GREATER 25)
    message(FATAL_ERROR "${count} lines:\n${output}")
  endif()
endfunction()

# Programs with what has to be shown for an H200.
file(GLOB programs "${PROGRAMS}/*.fut")
list(LENGTH programs count)
if(NOT count EQUAL 26)
  message(FATAL_ERROR "there are ${count} programs in ${PROGRAMS}, not 26")
endif()
set(fired 0)
foreach(program IN LISTS programs)
  file(STRINGS "${program}" arguments REGEX "^-- ARGS: ")
  string(REGEX REPLACE "^-- ARGS: " "" arguments "${arguments}")
  separate_arguments(arguments UNIX_COMMAND "${arguments}")
  aplc(0 explain "${program}" --device=h200 ${arguments})
  want_screen()
  file(STRINGS "${program}" shown REGEX "^-- SHOWS: ")
  if(NOT shown)
    message(FATAL_ERROR "${program} does not say what is to be shown")
  endif()
  foreach(line IN LISTS shown)
    string(REGEX REPLACE "^-- SHOWS: " "" line "${line}")
    want("${line}")
  endforeach()
  if(output MATCHES "[a-z]->[a-z]* +tiled")
    math(EXPR fired "${fired} + 1")
  endif()
endforeach()
if(NOT fired EQUAL 12)
  message(FATAL_ERROR "${fired} programs are tiled, not 12")
endif()

# Examples, on the machine that `aplc run` uses and on a GPU.
file(GLOB examples "${EXAMPLES}/*.fut" "${EXAMPLES}/tour/*.fut" "${EXAMPLES}/demo/*.fut")
list(LENGTH examples count)
if(count LESS 20)
  message(FATAL_ERROR "there are ${count} programs in ${EXAMPLES}")
endif()
foreach(program IN LISTS examples)
  foreach(device "" --device=h200)
    aplc(0 explain "${program}" ${device})
    want_screen()
    want("most would help: ")
    if(output MATCHES "core_|codegen/")
      message(FATAL_ERROR "a path of the tree is shown:\n${output}")
    endif()
  endforeach()
endforeach()
aplc(0 explain "${EXAMPLES}/tour/layers.fut" --device=h200 --size a=784 --size b=512 --size batch=1000 --size c=10)
want("^classify on h200, a=784 b=512 batch=1000 c=10\n.*  19 let product.*ba,ca->cb +tiled .*, the reduction in [0-9]+ parts")
# Which plan would be next, and who was asked what kernels spill.
set(matrices "${EXAMPLES}/mm0.fut" --json --size a=4096 --size b=4096 --size q=4096)
aplc(0 explain ${matrices})
want("\"dropped\": \"no compiler was asked .--ptxas.\"")
want("\"next\": \"mm0[.].*if this one's kernel spilled when it is loaded\"")
find_program(NVCC nvcc)
if(NVCC)
  aplc(0 explain --ptxas ${matrices})
  want("\"dropped\": \"none\"")
endif()
set(path "$ENV{PATH}")
set(ENV{PATH} "/nowhere")
aplc(0 explain --ptxas ${matrices})
want("\"dropped\": \"not known: cannot run the compiler `nvcc`")
set(ENV{PATH} "${path}")
# Sizes of the first dataset; those of the source only.
aplc(0 explain "${EXAMPLES}/tour/layers.fut")
want("^classify on cpu, a=2 b=3 batch=2 c=2 .first dataset.\n")
want("larger sizes: to start 3 kernels takes 6.00 us of")
aplc(0 explain "${EXAMPLES}/tour/attention.fut" --device=h200)
want("35 map2.*SDDMM +over the non-zeros of `mask`, by the runtime's kernel")

want("weighted on h200, d=16 e=24 h=3 m=200 n=200 .first dataset.")
# On a CPU, too, what is in the map over heads is done by non-zeros, and no version reads the matrix as a dense one.
aplc(0 explain "${EXAMPLES}/tour/attention.fut")
if(output MATCHES "dense copy")
  message(FATAL_ERROR "a mask becomes dense:\n${output}")
endif()
want("35 map2.*SDDMM +over the non-zeros of `mask`, by the runtime's kernel")
want("36 in map2.*SpMM +over the non-zeros of `mask`, by the runtime's kernel")
# Sparse operands: the sizes and the pattern of the matrix that is given, or of the first dataset; no time without the
# width of the product.
aplc(0 explain "${EXAMPLES}/demo/spmm.fut" "A=@${EXAMPLES}/demo/cora.mtx.gz" --size b=1024)
want("^spmm on cpu, b=1024 m=2708 n=2708\n +[0-9.]+ [um]s +100% +8 map.*SpMM")
aplc(0 explain "${EXAMPLES}/demo/spmm.fut" "A=@${EXAMPLES}/demo/cora.mtx.gz")
want("^spmm on cpu, m=2708 n=2708\n +. +8 map.*\nmost would help: sizes, for times: --size b=")
aplc(0 explain "${EXAMPLES}/demo/spmm.fut")
want("^spmm on cpu, b=2 m=3 n=2 .first dataset.\n +[0-9.]+ us 100%")

# One entry alone; matrices that are given are not asked for.
file(WRITE "${FOLDER}/sparse.fut" "#[sparse(A)] #[sparse(B)]
entry sums [n] (A: [n][n]f32) (B: [n][n]f32) = (map f32.sum A, map f32.sum B)
#[sparse(A)]
entry dense [n][b] (A: [n][n]f32) (B: [n][b]f32) =
  map (\\r -> map (\\c -> f32.sum (map2 (\\a x -> (a + 1) * x) r c)) (transpose B)) A
")
set(cora "@${EXAMPLES}/demo/cora.mtx.gz")
aplc(0 explain -e sums sparse.fut "A=${cora}" "B=${cora}")
if(output MATCHES "for times|dense on")
  message(FATAL_ERROR "matrices that are given are asked for, or another entry is explained:\n${output}")
endif()
want("^sums on cpu, n=2708\n")
aplc(0 explain sparse.fut --entry=sums "A=${cora}")
want("most would help: a matrix, for times: B=@FILE.mtx\n")
aplc(64 explain sparse.fut --entry=none)
want_error("no entry `none`; there are: sums, dense")
# What a sparse operand that becomes dense costs, and why it does: the copy, and the kernel that reads it.
aplc(0 explain sparse.fut -e dense "A=${cora}" --size b=64)
want("5 map.*packed for a micro-kernel, not by non-zeros: where `A` has no element, the sum's term is not known")
want("dense copy +`A` is made dense, too, .n..n.f32: where `A` has no element")
want("most would help: line 5: give the neutral element where the element is 0")
# It is a warning of all commands that compile the program.
aplc(0 c sparse.fut -o "${FOLDER}/sparse.c")
want_error("sparse.fut:5:3: warning: `A` is copied to a dense .n..n.f32 .4.n.n bytes. and read as such: where")
want_error("warning.sparse-became-dense")
aplc(0 check sparse.fut)
want_error("sparse.fut:5:3: warning: `A` is copied")
aplc(2 c --Werror sparse.fut -o "${FOLDER}/sparse.c")
want_error("sparse.fut:5:3: error: `A` is copied")
# Products of two sparse matrices: the result is dense, and on GPUs elements of one operand are looked up.
file(WRITE "${FOLDER}/square.fut" "#[sparse(A)]
entry square [n] (A: [n][n]f32) = map (\\r -> map (\\c -> f32.sum (map2 (*) r c)) (transpose A)) A
")
aplc(0 explain square.fut "A=${cora}" --device=h200)
want("SpMM +over the non-zeros of `A`, by a kernel of its own, elements of `A` are looked up in its rows, the result is a dense .n..n.f32")
aplc(0 explain square.fut "A=${cora}")
want("SpMM +over the non-zeros of `A`, by a kernel of its own, and over those of `A`, the result is a dense .n..n.f32")
if(errors MATCHES "warning")
  message(FATAL_ERROR "a product of sparse matrices is no operand that became dense:\n${errors}")
endif()

# Nests that make rows from rows of a sparse operand have no version that needs it as a dense matrix.
foreach(target c cuda)
  aplc(0 ${target} --remarks "${PROGRAMS}/../programs/sparse_rows.fut" -o "${FOLDER}/sparse_rows.c")
  if(errors MATCHES "sparsify:dense-copy" OR NOT errors MATCHES "sparsify:sddmm")
    message(FATAL_ERROR "an operand becomes dense for ${target}:\n${errors}")
  endif()
endforeach()

# Loops multiply, also of contractions; every kernel of a line has a row; a loop of unknown length is no single round.
file(WRITE "${FOLDER}/counted.fut" "
def product [n][k][m] (A: [n][k]f32) (B: [k][m]f32) = map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
entry once [n] (A: [n][n]f32) (B: [n][n]f32) = product A B
entry hundred [n] (A: [n][n]f32) (B: [n][n]f32) : [n][n]f32 = loop C = A for _i < 100 do product C B
entry doubled [n] (A: [n][n]f32) =
  (loop (A: [n][n]f32, k) = (A, 1) while k < n do (product A A, 2 * k)).0
entry until [n] (A: [n][n]f32) = loop A: [n][n]f32 = A while A[0, 0] < 9 do product A A
entry keeps [m][n][q] (A: [m][q]f32) (B: [n][q]f32) =
  unzip (map (\\r -> map (\\c -> let p = map2 (*) r c in (f32.sum p, p)) B |> unzip) A)
")
set(large --device=h100 --size n=2048)
aplc(0 explain counted.fut -e once ${large})
want("once on h100, n=2048\n    363 us 100%")
aplc(0 explain counted.fut -e hundred ${large})
want("36[0-9]+ us 100% +2 def product.*; x 100\n")
aplc(0 explain counted.fut -e doubled ${large})
want(" 2 def product.*; x 11\n")
aplc(0 explain counted.fut -e until ${large})
want(" +>=363 us .* 2 def product.*; each round of a loop of unknown length\n")
aplc(0 explain counted.fut -e keeps --device=h100 --size n=2048 --size m=1000 --size q=1000)
want("27[0-9]+ us +95% +9 unzip.* map +one thread an element\n +137 us +5% +9 unzip.*mq,nq->mn +tiled")
# What was asked for is not called a choice.
aplc(0 explain counted.fut -e once ${large} --param once.variant=3)
want("one thread a point, as once.variant asks")

# What is not chosen at these sizes is said on the same line.
aplc(0 explain "${PROGRAMS}/product.fut" --device=h200 --size m=2 --size n=2 --size q=2)
want("mq,qn->mn +tiled for larger sizes; at these one thread a point is faster")
# Without sizes there are no times.
aplc(0 explain "${PROGRAMS}/product.fut" --device=h200)
want("^main on h200, sizes unknown\n +. +[0-9]+ map")
want("most would help: sizes, for times: --size m=... --size")

# A line without decisions, and everything.
aplc(0 explain "${EXAMPLES}/tour/layers.fut:3")
want("^nothing was decided about line 3; the next line with a decision is 19: let product")
aplc(0 explain "${EXAMPLES}/tour/layers.fut:9999")
want("the last line with a decision is 31: xss ")
aplc(0 explain "${EXAMPLES}/tour/layers.fut:19")
want("tile-contraction: tiled the contraction ba,ca->cb")
# The tiles of a reduction in parts are those of a part.
aplc(0 explain --all "${EXAMPLES}/tour/layers.fut" --device=h200 --size a=784 --size b=512 --size batch=1000 --size c=10)
want("variant +split\n.*tile.w2 +32 x 32 elements, 4.0 KiB a stage\n +tile.xss +64 x 32 elements")
aplc(0 explain --all "${EXAMPLES}/tour/layers.fut")
want("inline: 'relu' inlined.*condition.free-dim")
file(WRITE "${FOLDER}/none.fut" "def f (x: i32) = x\n")
aplc(0 explain none.fut)
want("none.fut has no entry")
file(WRITE "${FOLDER}/scalar.fut" "entry main (x: i32) : i32 = x + 1\n")
aplc(0 explain scalar.fut)
want("nothing of this entry runs in parallel")
aplc(0 explain scalar.fut:1)
want("no pass decided anything")
