;;= I128 cpu_timer
;;: story "An endless command is ended from outside."
;;: expect ["cpu_limit"]
;;: behind ["cpu_watch", "rlimits"]
;;: limits {"cpu_ms": 60, "wall_ms": 1200}
;;: again [{"wall": "cpu_watch", "mark": "-by-parent", "behind": ["cpu_timer", "rlimits"]}]
;; Mechanism and body of endless commands.
;;- loop: an empty loop
(loop $l (br $l))
;;- start: a loop in the start function, before the command begins

;;+ extra
(func $s (loop $l (br $l))) (start $s)
;;- loop-if: a loop whose condition never fails
(loop $l (br_if $l (i32.eqz (i32.load (i32.const 999)))))
;;- nested: loops inside loops
(loop $a (loop $b (br_if $b (i32.const 0)) (br $a)))
;;- br-table: a jump table that always jumps back
(loop $l (block $x (br_table $l $l $x (i32.const 1))))
;;- call: a loop of calls
(loop $l (call $nothing) (br $l))
;;+ extra
(func $nothing)
;;- indirect: a loop of indirect calls
(loop $l (call_indirect (type $t) (i32.const 0)) (br $l))
;;+ extra
(type $t (func)) (func $nothing) (table 1 funcref) (elem (i32.const 0) $nothing)
;;- fill: filling the memory again and again
(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) (br $l))
;;- copy: copying the memory again and again
(loop $l (memory.copy (i32.const 0) (i32.const 8) (i32.const 65000)) (br $l))
;;- init: a passive segment copied again and again
(loop $l (memory.init $d (i32.const 0) (i32.const 0) (i32.const 4)) (br $l))
;;+ extra
(data $d "abcd")
;;- table-fill: filling a table again and again
(loop $l (table.fill $t (i32.const 0) (ref.null func) (i32.const 1000)) (br $l))
;;+ extra
(table $t 1000 funcref)
;;- grow-zero: growing the memory by nothing
(loop $l (drop (memory.grow (i32.const 0))) (br $l))
;;- grow-refused: growing the memory beyond what is allowed
(loop $l (drop (memory.grow (i32.const 65000))) (br $l))
;;- float: arithmetic of floats
(local f64) (loop $l (local.set 0 (f64.sqrt (f64.add (local.get 0) (f64.const 1)))) (br $l))
;;- divide: division of integers
(local i64) (loop $l (local.set 0 (i64.div_u (i64.const -1) (i64.const 3))) (br $l))
;;- vector: vectors
(local v128) (loop $l (local.set 0 (i32x4.add (local.get 0) (v128.const i32x4 1 1 1 1))) (br $l))
;;- select: a choice made for ever
(loop $l (drop (select (i32.const 1) (i32.const 2) (i32.const 0))) (br $l))

;;= I132 cpu_timer
;;: story "The host's time for a call counts as the command's."
;;: expect ["cpu_limit"]
;;: behind ["cpu_watch", "rlimits"]
;;: limits {"cpu_ms": 60, "wall_ms": 1200}
;;: again [{"wall": "cpu_watch", "mark": "-by-parent", "behind": ["cpu_timer", "rlimits"]}]
;;: script "(loop $l ATTACK (br $l))"
;; Endless commands that call the host; the host's time counts as the command's.
;;- yield: giving up its turn
(drop (call $sched_yield))
;;- random: randomness by the page
(drop (call $random_get (i32.const 0) (i32.const 65536)))
;;- clock: reading the clock
(drop (call $clock_time_get (i32.const 0) (i64.const 0) (i32.const 100)))
;;- close: closing what is not open
(drop (call $fd_close (i32.const 9)))
;;- read: reading an input that is at its end
(drop (call $fd_read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 200)))
;;- write-nothing: writing nothing
(drop (call $fd_write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 200)))
;;- vectors: a thousand empty vectors in each write
(drop (call $fd_write (i32.const 1) (i32.const 1024) (i32.const 1024) (i32.const 200)))
;;- poll-streams: polling streams that are always ready
(i32.store8 (i32.const 1032) (i32.const 2)) (drop (call $poll_oneoff (i32.const 1024) (i32.const 4096) (i32.const 64) (i32.const 200)))
;;- poll-zero: sleeping for no time
(i32.store (i32.const 1040) (i32.const 1)) (drop (call $poll_oneoff (i32.const 1024) (i32.const 4096) (i32.const 1) (i32.const 200)))
;;- arguments: asking for its arguments
(drop (call $args_sizes_get (i32.const 100) (i32.const 104)))
;;- refused: calls with pointers that are refused
(drop (call $random_get (i32.const -1) (i32.const 99)))
;;- log-half: a log line without end, a byte at a time
(i32.store (i32.const 64) (i32.const 999)) (i32.store (i32.const 68) (i32.const 1)) (drop (call $fd_write (i32.const 2) (i32.const 64) (i32.const 1) (i32.const 200)))

;;= I132-sleep wall_clock
;;: story "A command that sleeps uses no CPU time; the parent's deadline ends it."
;;: expect ["wall_limit"]
;;: seen {"in_time": true}
;;: limits {"wall_ms": 150, "cpu_ms": 100}
;;- hour: sleeping for an hour
(i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 3600000000000))(i32.store16 (i32.const 1064) (i32.const 0))(drop (call $poll_oneoff (i32.const 1024) (i32.const 4096) (i32.const 1) (i32.const 200)))
;;- for-ever: sleeping for five hundred years
(i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const -1))(i32.store16 (i32.const 1064) (i32.const 0))(drop (call $poll_oneoff (i32.const 1024) (i32.const 4096) (i32.const 1) (i32.const 200)))
;;- absolute: sleeping until the year 2500
(i32.store (i32.const 1040) (i32.const 0)) (i64.store (i32.const 1048) (i64.const 16725225600000000000))(i32.store16 (i32.const 1064) (i32.const 1))(drop (call $poll_oneoff (i32.const 1024) (i32.const 4096) (i32.const 1) (i32.const 200)))
;;- pieces: sleeping a little, for ever
(loop $l (i32.store (i32.const 1040) (i32.const 1)) (i64.store (i32.const 1048) (i64.const 20000000))(i32.store16 (i32.const 1064) (i32.const 0))(drop (call $poll_oneoff (i32.const 1024) (i32.const 4096) (i32.const 1) (i32.const 200))) (br $l))
;;- many: sixty-four clocks, the nearest an hour away
(local $i i32) (loop $l (i32.store (i32.add (i32.const 1040) (i32.mul (local.get $i) (i32.const 48))) (i32.const 1)) (i64.store (i32.add (i32.const 1048) (i32.mul (local.get $i) (i32.const 48))) (i64.const 3600000000000)) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 64)))) (drop (call $poll_oneoff (i32.const 1024) (i32.const 8192) (i32.const 64) (i32.const 200)))

;;= I127 store_limit
;;: story "Linear memory is limited for every way of allocation."
;;: expect ["ok", "memory_limit", "script_error", "cpu_limit"]
;;: behind ["rlimits"]
;;: limits {"memory_bytes": 16777216, "cpu_ms": 1500, "wall_ms": 20000}
;;- grow: growing by sixteen pages and filling them
(loop $l (drop (memory.grow (i32.const 16))) (memory.fill (i32.const 4096) (i32.const 1) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4096))) (br_if $l (i32.lt_u (memory.size) (i32.const 1500))))(call $say (memory.size))
;;- grow-once: growing by ninety megabytes at once
(drop (memory.grow (i32.const 1400))) (memory.fill (i32.const 65536) (i32.const 1) (i32.const 90000000)) (call $say (memory.size))
;;- begin: beginning with ninety megabytes
(memory.fill (i32.const 0) (i32.const 1) (i32.const 90000000)) (call $say (memory.size))
;;+ memory
(memory (export "memory") 1400)
;;- segment: a data segment at the end of ninety megabytes
(memory.fill (i32.const 0) (i32.const 1) (i32.const 90000000)) (call $say (memory.size))
;;+ memory
(memory (export "memory") 1400)
;;+ extra
(data (i32.const 91000000) "end")

;;= I127 table_limit
;;: story "Tables use memory of the host that the memory limit does not count."
;;: seen {"small_table": true}
;;: behind ["rlimits"]
;;: limits {"cpu_ms": 1500, "wall_ms": 20000, "memory_bytes": 67108864}
;;- table-grow: growing a table to ten million elements
(drop (table.grow $t (ref.null func) (i32.const 10000000))) (call $say (table.size $t))
;;+ extra
(table $t 10 funcref)
;;- table-steps: growing a table by a thousand, ten thousand times
(local $i i32) (loop $l (drop (table.grow $t (ref.null func) (i32.const 1000))) (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 10000)))) (call $say (table.size $t))
;;+ extra
(table $t 10 funcref)

;;= I129 guest_stack
;;: story "A command's recursion ends in a trap, not in the worker's memory."
;;: expect ["stack_limit"]
;;: seen {"survives": true}
;;: limits {"cpu_ms": 500, "wall_ms": 3000}
;;- direct: a function that calls itself
(call $f)
;;+ extra
(func $f (call $f))
;;- mutual: two functions that call each other
(call $f)
;;+ extra
(func $f (call $g)) (func $g (call $f))
;;- indirect: a function that calls itself by a table
(call $f)
;;+ extra
(type $t (func)) (func $f (call_indirect (type $t) (i32.const 0))) (table 1 funcref) (elem (i32.const 0) $f)
;;- arguments: recursion with many arguments
(call $f (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6) (i64.const 7) (i64.const 8))
;;+ extra
(func $f (param i64 i64 i64 i64 i64 i64 i64 i64) (call $f (local.get 7) (local.get 6) (local.get 5) (local.get 4) (local.get 3) (local.get 2) (local.get 1) (local.get 0)))
;;- result: recursion that uses its own result
(drop (call $f (i32.const 1)))
;;+ extra
(func $f (param i32) (result i32) (i32.add (call $f (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))
;;- start: recursion in the start function

;;+ extra
(func $f (call $f)) (start $f)
;;- vectors: frames of vectors
(drop (call $f (v128.const i32x4 1 2 3 4)))
;;+ extra
(func $f (param v128) (result v128) (i32x4.add (call $f (i32x4.add (local.get 0) (local.get 0))) (local.get 0)))

;;= I127 table_limit
;;: expect ["memory_limit"]
;;: seen {"ends_as": ["memory_limit"]}
;;: story "Tables use memory of the host that the memory limit does not count."
;;: behind ["rlimits"]
;;: limits {"memory_bytes": 67108864, "cpu_ms": 500}
;;- tables: sixty tables
(call $say (i32.const 1))
;;+ extra
«(table $t# 90000 funcref)×60»

;;= I129 guest_stack
;;: expect ["stack_limit"]
;;: seen {"survives": true}
;;: story "A command's recursion ends in a trap, not in the worker's memory."
;;: limits {"cpu_ms": 500, "wall_ms": 3000}
;;- frames: frames of nine hundred variables
(drop (call $f (i64.const 1)))
;;+ extra
(func $f (param i64) (result i64) (local« i64×900») (local.set 5 (local.get 0)) (i64.add (call $f (i64.add (local.get 5) (i64.const 1))) (local.get 5)))
