;;= B24-command worker_output
;;: made "flood"
;;: says "standard output: {}"
;;: expect ["output_limit"]
;;: seen {"survives": true, "ends_as": ["output_limit"]}
;;: story "A large result is stopped before it is copied."
;;: behind ["parent_output"]
;;: limits {"result_bytes": 4096, "cpu_ms": 1500, "wall_ms": 4000}
;;: again [{"wall": "parent_output", "mark": "-by-parent", "behind": ["worker_output"]}]
;;- bytes: a megabyte of digits
«1×1000»
;;+ times
1000
;;- single: four thousand single digits
1
;;+ times
4200
;;- one-more: one byte too many
«1×4097»
;;+ times
1

;;= B27-command parent_log
;;: made "flood"
;;: says "standard error: {}"
;;: expect ["ok", "cpu_limit"]
;;: seen {"marked": true}
;;: story "The log is cut at its limit, with a note."
;;: behind ["worker_log"]
;;: limits {"log_lines": 50, "log_bytes": 4096, "log_line_bytes": 256, "cpu_ms": 500, "wall_ms": 3000}
;;: again [{"wall": "worker_log", "mark": "-in-worker", "behind": ["parent_log"]}]
;;- lines: ten thousand lines
x\n
;;+ times
10000
;;+ stream
2
;;- long: a line of a million characters
xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
;;+ times
30000
;;+ stream
2
;;- binary: lines of control characters and invalid UTF-8
\1b[2J\ff\fe\00\n
;;+ times
2000
;;+ stream
2
