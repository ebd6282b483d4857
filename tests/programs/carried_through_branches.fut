-- Arrays that a loop carries through branches and inner loops: every step writes the elements that it changes, and
-- nothing is copied, whichever branch is taken.

def index (n: i64) (x: i32): i64 = i64.i32 x % n

-- A sieve that ends at the root of n: three branches, of which one strikes multiples.
entry sieve [n] (_: [n]i32): [n]bool =
  let (prime, _, _) =
    loop (prime, p, going) = (replicate n true, 2, true) while going do
      if p * p >= n then (prime, p, false)
      else if prime[p]
      then let (prime, _) = loop (prime, q) = (prime, p * p) while q < n do (prime with [q] = false, q + p)
           in (prime, p + 1, true)
      else (prime, p + 1, true)
  in prime

-- The representative of x, with the path to it compressed.
def find [n] (parent: *[n]i64) (x: i64): (*[n]i64, i64) =
  let root = loop r = x while parent[r] != r do parent[r]
  let (parent, _) =
    loop (parent, y) = (parent, x) while parent[y] != root do
      let next = parent[y]
      in (parent with [y] = root, next)
  in (parent, root)

entry union_find [n] (xs: [n]i32) (ys: [n]i32): ([n]i64, i64) =
  loop (parent, sets) = (iota n, n) for i < n do
    let (parent, a) = find parent (index n xs[i])
    let (parent, b) = find parent (index n ys[i])
    in if a == b then (parent, sets) else (parent with [a] = b, sets - 1)

-- Distances from vertex 0 along two edges a vertex, by a worklist.
entry breadth_first [n] (xs: [n]i32) (ys: [n]i32): [n]i32 =
  let start = if n > 0 then ((replicate n (-1)) with [0] = 0i32, 1) else (replicate n (-1), 0)
  let (distance, _, _, _) =
    loop (distance, queue, head, tail) = (start.0, replicate n 0i64, 0i64, start.1) while head < tail do
      let v = queue[head]
      in loop (distance, queue, head, tail) = (distance, queue, head + 1, tail) for k < 2i32 do
           let w = index n (if k == 0 then xs[v] else ys[v])
           in if distance[w] >= 0 then (distance, queue, head, tail)
              else (distance with [w] = distance[v] + 1, queue with [tail] = w, head, tail + 1)
  in distance

def swap [n] 't (xs: *[n]t) (i: i64) (j: i64): *[n]t =
  let x = copy xs[i]
  let y = copy xs[j]
  in (xs with [i] = y) with [j] = x

-- A binary heap: everything is pushed, then popped.
def push [n] (heap: *[n]i32) (size: i64) (x: i32): *[n]i32 =
  let (heap, _, _) =
    loop (heap, k, going) = (heap with [size] = x, size, true) while going do
      let up = (k - 1) / 2
      in if k == 0 || heap[up] <= heap[k] then (heap, k, false) else (swap heap up k, up, true)
  in heap

def pop [n] (heap: *[n]i32) (size: i64): (*[n]i32, i32) =
  let least = heap[0]
  let (heap, _, _) =
    loop (heap, k, going) = (heap with [0] = heap[size - 1], 0, true) while going do
      let left = 2 * k + 1
      in if left >= size - 1 then (heap, k, false)
         else let child = if left + 1 < size - 1 && heap[left + 1] < heap[left] then left + 1 else left
              in if heap[k] <= heap[child] then (heap, k, false) else (swap heap k child, child, true)
  in (heap, least)

entry heap_sort [n] (xs: [n]i32): [n]i32 =
  let heap = loop heap = replicate n 0 for i < n do push heap i xs[i]
  let (_, sorted) =
    loop (heap, sorted) = (heap, replicate n 0) for i < n do
      let (heap, x) = pop heap (n - i)
      in (heap, sorted with [i] = x)
  in sorted

-- An interpreter of bytecode: the state is a record of arrays, the step a match on the opcode.
type opcode = #push i32 | #add | #dup | #store i64 | #load i64 | #skip_if_zero | #nop

type machine [n] = {stack: [n]i32, memory: [n]i32, top: i64, pc: i64}

def decode (n: i64) (op: i32) (x: i32): opcode =
  match op % 7
  case 0 -> #push x
  case 1 -> #add
  case 2 -> #dup
  case 3 -> #store (index n x)
  case 4 -> #load (index n x)
  case 5 -> #skip_if_zero
  case _ -> #nop

def step [n] ({stack, memory, top, pc}: *machine [n]) (op: opcode): *machine [n] =
  match op
  case #push x ->
    if top < n then {stack = stack with [top] = x, memory, top = top + 1, pc = pc + 1}
    else {stack, memory, top, pc = pc + 1}
  case #add ->
    if top < 2 then {stack, memory, top, pc = pc + 1}
    else let sum = stack[top - 2] + stack[top - 1]
         in {stack = stack with [top - 2] = sum, memory, top = top - 1, pc = pc + 1}
  case #dup ->
    if top < 1 || top >= n then {stack, memory, top, pc = pc + 1}
    else let x = stack[top - 1] in {stack = stack with [top] = x, memory, top = top + 1, pc = pc + 1}
  case #store at ->
    if top < 1 then {stack, memory, top, pc = pc + 1}
    else let x = stack[top - 1] in {stack, memory = memory with [at] = x, top = top - 1, pc = pc + 1}
  case #load at ->
    if top >= n then {stack, memory, top, pc = pc + 1}
    else let x = memory[at] in {stack = stack with [top] = x, memory, top = top + 1, pc = pc + 1}
  case #skip_if_zero ->
    {stack, memory, top, pc = if top > 0 && stack[top - 1] == 0 then pc + 2 else pc + 1}
  case #nop -> {stack, memory, top, pc = pc + 1}

entry bytecode [n] (ops: [n]i32) (arguments: [n]i32): ([n]i32, [n]i32) =
  let m: machine [n] =
    loop m = {stack = replicate n 0, memory = replicate n 0, top = 0, pc = 0} while m.pc < n do
      step m (decode n ops[m.pc] arguments[m.pc])
  in (m.stack, m.memory)

-- The order in which a search that goes deep first leaves vertices; each vertex is on the stack twice at most.
entry depth_first [n] (xs: [n]i32) (ys: [n]i32): [n]i64 =
  let (order, _, _, _) =
    loop (order, colour, stack, count) = (replicate n (-1), replicate n 0i8, replicate (2 * n + 1) 0i64, 0) for root < n do
      if colour[root] != 0 then (order, colour, stack, count)
      else let (order, colour, stack, _, count) =
             loop (order, colour, stack, size, count) = (order, colour, stack with [0] = root, 1, count) while size > 0 do
               let v = stack[size - 1]
               in if colour[v] == 0
                  then let (stack, size) =
                         loop (stack, size) for k < 2i32 do
                           let w = index n (if k == 0 then xs[v] else ys[v])
                           in if colour[w] != 0 then (stack, size) else (stack with [size] = w, size + 1)
                       in (order, colour with [v] = 1, stack, size, count)
                  else if colour[v] == 1
                  then (order with [count] = v, colour with [v] = 2, stack, size - 1, count + 1)
                  else (order, colour, stack, size - 1, count)
           in (order, colour, stack, count)
  in order

-- The largest value of things that fit: those that are too heavy leave the table as it is.
entry knapsack [n] (weights: [n]i32) (worths: [n]i32): [n]i32 =
  loop best = replicate n 0 for i < n do
    let weight = 1 + i64.i32 weights[i] % 8
    in if weight >= n then best
       else loop best for j < n - weight do
              let k = n - 1 - j
              let with_it = best[k - weight] + worths[i]
              in if with_it > best[k] then best with [k] = with_it else best

-- A hash table with linear probing, twice as large as it has keys.
entry hash_table [n] (keys: [n]i32): ([]i32, i64) =
  let size = 2 * n + 1
  in loop (table, count) = (replicate size i32.lowest, 0) for i < n do
       let key = keys[i]
       let at =
         loop at = index size (key * 31) while table[at] != i32.lowest && table[at] != key do (at + 1) % size
       in if table[at] == key then (table, count) else (table with [at] = key, count + 1)

-- A list in arrays: what is used moves to its front.
entry move_to_front [n] (uses: [n]i32): [n]i64 =
  let start = (map (\i -> if i + 1 < n then i + 1 else -1) (iota n), map (\i -> i - 1) (iota n), 0i64)
  let (next, _, first) =
    loop (next, previous, first) = start for i < n do
      let x = index n uses[i]
      in if x == first then (next, previous, first)
         else let before = previous[x]
              let behind = next[x]
              let next = next with [before] = behind
              let previous = if behind >= 0 then previous with [behind] = before else previous
              in (next with [x] = first, (previous with [first] = x) with [x] = -1, x)
  let (order, _, _) =
    loop (order, at, k) = (replicate n (-1), first, 0) while k < n do (order with [k] = at, next[at], k + 1)
  in order

-- A game of life on a ring, some steps of which are skipped.
entry life [n][k] (start: [n]i32) (skipped: [k]i32): [n]i32 =
  loop cells = map (% 2) start for i < k do
    if skipped[i] % 2 == 0 then cells
    else map (\j -> (cells[(j - 1) % n] + cells[j] + cells[(j + 1) % n]) % 2) (iota n)

-- Quicksort with a stack of ranges: partitions swap in place.
entry quick_sort [n] (xs: [n]i32): [n]i32 =
  let (sorted, _, _) =
    loop (xs, ranges, size) = (copy xs, (replicate (n + 1) (0i64, 0i64)) with [0] = (0, n), 1i64) while size > 0 do
      let (from, to) = ranges[size - 1]
      in if to - from < 2 then (xs, ranges, size - 1)
         else let pivot = xs[to - 1]
              let (xs, middle) =
                loop (xs, k) = (xs, from) for j in from..<to - 1 do
                  if xs[j] < pivot then (swap xs j k, k + 1) else (xs, k)
              let xs = swap xs middle (to - 1)
              in (xs, (ranges with [size - 1] = (from, middle)) with [size] = (middle + 1, to), size + 1)
  in sorted

-- Elimination modulo a prime: rows are swapped if the pivot is zero, and nothing is done where no row has one.
entry eliminate [n] (xss: [n][n]i32): [n][n]i32 =
  loop rows = map (map (% 7)) xss for c < n do
    let pivot = loop r = c while r < n && rows[r, c] == 0 do r + 1
    in if pivot == n then rows
       else let rows = if pivot == c then rows else swap rows pivot c
            in loop rows for r in c + 1..<n do
                 if rows[r, c] == 0 then rows
                 else let factor = rows[r, c] * rows[c, c] ** 5
                      in loop rows for j < n do
                           let x = (rows[r, j] - factor * rows[c, j]) % 7
                           in rows with [r, j] = x

-- Each thread has a state of its own.
entry in_threads [m][n] (xss: [m][n]i32): [m][n]i32 =
  map (\xs ->
         loop ys = copy xs for i < n do
           if ys[i] % 3 == 0 then ys
           else if ys[i] % 3 == 1 then loop ys for j < 2 do ys with [(i + j) % n] = ys[i] + 1
           else ys with [n - 1 - i] = 3)
      xss

-- An array that doubles when it is full: in other iterations it stays where it is.
entry grow [n] (xs: [n]i32): []i32 =
  let (buffer, size) =
    loop (buffer: *[]i32, size: i64) = ([0], 0) for i < n do
      let buffer: []i32 = if size == length buffer then buffer ++ buffer else buffer
      in (buffer with [size] = xs[i], size + 1)
  in take size buffer

-- Two steps of a wave are kept; some iterations leave both as they are, others let them swap their roles.
entry wave [n][k] (xs: [n]i32) (ys: [n]i32) (kinds: [k]i32): ([n]i32, [n]i32) =
  loop (before, now) = (copy xs, copy ys) for i < k do
    if kinds[i] % 3 == 0 then (before, now)
    else if kinds[i] % 3 == 1 then (now, before)
    else (now, map (\j -> now[(j + 1) % n] + now[(j - 1) % n] - before[j]) (iota n))

-- A branch that makes an array beside one that updates it, and one that is decided inside of another.
entry either [n] (xs: [n]i32): [n]i32 =
  loop a = map (+ 1) xs for i < n do
    if xs[i] % 4 == 0 then a
    else if xs[i] % 4 == 1 then loop a for j < 2 do a with [(i + j) % n] = a[i] + 1
    else if xs[i] % 4 == 2 then map (\j -> a[n - 1 - j]) (iota n)
    else a with [i] = 0
