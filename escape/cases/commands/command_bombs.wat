;;= I131 proposals_off
;;: made "assembled"
;;: expect ["compile_error"]
;;: seen {"survives": true, "ends_as": ["compile_error"]}
;;: story "Each part of WebAssembly that a command does not need is compiler and runtime code that an attacker could reach."
;;- atomics: atomic arithmetic
(drop (i32.atomic.rmw.add (i32.const 0) (i32.const 1)))
;;- fence: a fence between threads
atomic.fence
;;- notify: waking threads that wait
(drop (memory.atomic.notify (i32.const 0) (i32.const 1)))
;;- tail-call: a call in the place of a return
return_call $f
;;+ items
(func $f)
;;- tail-call-indirect: the same by a table
(return_call_indirect (type $t) (i32.const 0))
;;+ items
(type $t (func)) (func $f) (table 1 funcref) (elem (i32.const 0) $f)
;;- function-references: a typed reference to a function
(call_ref $t (ref.func $f))
;;+ items
(type $t (func)) (func $f (type $t)) (elem declare func $f)
;;- structs: objects of the collector
(drop (struct.new $s (i32.const 1)))
;;+ items
(type $s (struct (field i32)))
;;- arrays: arrays of the collector
(drop (array.new_default $a (i32.const 9)))
;;+ items
(type $a (array i32))
;;- small-integers: tagged integers
(drop (ref.i31 (i32.const 1)))
;;- relaxed-vectors: vectors whose result depends on the processor
(drop (i32x4.relaxed_trunc_f32x4_s (v128.const f32x4 1 2 3 4)))
;;- memories: a second memory

;;+ items
(memory 1)
;;- memory64: a memory of sixty-four bits beside

;;+ items
(memory i64 1)
;;- table64: a table of sixty-four bits

;;+ items
(table i64 1 funcref)
;;- wide: arithmetic of a hundred and twenty-eight bits
(i64.add128 (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)) drop drop
;;- exceptions: a thrown exception
(block $b (try_table (catch_all $b) (throw $e)))
;;+ items
(tag $e)
;;- tags: a tag for exceptions

;;+ items
(tag $e (param i32))
;;- page-size: pages of one byte

;;+ memory
(memory (export "memory") 65536 (pagesize 1))
;;- continuations: a type of continuations

;;+ items
(type $f (func)) (type $c (cont $f))
