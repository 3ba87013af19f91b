"""Where a run of the whole suite begins."""

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "chaos/test_cuts.py", "unit/data/test_sql_is_python.py", "chaos/test_processes.py", "escape/test_pool_chaos.py", "e2e/test_demo.py",
    "e2e/test_nouns.py", "api/test_description.py", "escape/test_suite_sees.py", "e2e/test_effects_killed.py", "chaos/test_havoc.py",
    "chaos/test_recovery.py", "chaos/test_restarts.py", "chaos/test_server.py", "e2e/test_changes.py", "e2e/test_places.py",
    "escape/test_every_syscall.py", "sim/test_plants.py", "escape/test_pool_life.py", "e2e/test_escape.py", "e2e/test_bench.py",
    "api/test_abuse.py", "api/test_requests.py", "e2e/test_exec.py", "unit/data/test_isolation.py", "store/test_seals.py",
    "api/test_sessions.py", "api/test_route_table.py", "node/test_pings.py", "store/test_archives.py", "store/test_labels.py",
    "node/test_wasm_node.py", "store/test_secrets.py", "store/test_day_budgets.py", "escape/test_cases.py",
)  # fmt: skip
