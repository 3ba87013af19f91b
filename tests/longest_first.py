"""Where a run of the whole suite begins."""

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "web/test_live_pages.py", "web/test_every_page.py", "web/test_lists.py", "chaos/test_cuts.py",
    "chaos/test_upgrades.py", "store/test_migrations.py", "e2e/test_service.py", "sim/test_planted_bugs.py",
    "test_wings.py", "e2e/test_examples.py", "e2e/test_bench.py", "test_wheel.py", "escape/test_cases.py",
    "web/test_tools.py", "chaos/test_processes.py", "escape/test_pool_chaos.py", "e2e/test_demo.py", "test_guides.py",
    "store/test_lost_runs.py", "features/replays/test_replays.py", "e2e/test_up.py", "conformance/test_intl.py",
    "web/test_browser.py", "chaos/test_restarts.py", "escape/test_hostile_arguments.py", "api/test_route_table.py",
    "e2e/test_reading_creates_nothing.py", "escape/test_suite_sees.py", "e2e/test_changes.py",
    "escape/test_owned_worker.py", "limits/test_memory_peak.py", "api/test_typescript_client.py",
    "api/test_description.py", "escape/test_native_libraries.py", "deploy/test_reverse_proxy.py",
    "store/test_audit.py", "e2e/test_assistants.py", "unit/capabilities/test_attempt.py", "sim/test_worlds.py",
    "test_front_door.py", "chaos/test_recovery.py", "store/test_round_trips.py", "chaos/test_havoc.py",
    "api/test_client.py", "unit/runtime/test_artefact.py", "chaos/test_failover.py", "unit/data/test_isolation.py",
    "e2e/test_effects_killed.py", "api/test_requests.py", "store/test_hostile_arguments.py", "e2e/test_places.py",
    "e2e/test_streams.py", "api/test_live.py", "api/test_filters.py", "limits/test_native_choice.py",
    "test_language.py", "e2e/test_doctor.py", "sim/test_server.py", "escape/test_wasm_commands.py",
    "test_public_api.py", "escape/test_degraded_host.py", "e2e/test_nouns.py", "escape/test_pool_life.py",
    "test_docs.py", "e2e/test_waiting.py", "conformance/test_web_platform.py", "store/test_backups.py",
    "store/test_seals.py", "node/test_stored_dry_runs.py", "e2e/test_up_waits.py",
    "unit/recurrence/test_english_phrases.py", "web/test_many_pages.py", "api/test_sessions.py",
    "features/shadows/test_shadows.py", "store/test_database_users.py", "unit/data/test_large_rows.py",
    "deploy/test_sbom.py",
)  # fmt: skip
