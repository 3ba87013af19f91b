"""Where a run of the whole suite begins, and what its processes take at a time."""

from typing import Any

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "web/test_every_page.py", "test_wings.py", "chaos/test_upgrades.py", "test_guides.py",
    "chaos/test_processes.py", "escape/test_suite_sees.py", "store/test_migrations.py", "e2e/test_examples.py",
    "conformance/test_intl.py", "sim/test_planted_bugs.py", "escape/test_hostile_arguments.py",
    "chaos/test_cuts.py", "e2e/test_bench.py", "escape/test_native_libraries.py", "e2e/test_demo.py",
    "e2e/test_service.py", "escape/test_pool_life.py", "web/test_live_pages.py", "node/test_stored_dry_runs.py",
    "web/test_tools.py", "web/test_browser.py", "escape/test_cases.py", "test_wheel.py", "e2e/test_assistants.py",
    "api/test_route_table.py", "escape/test_wasm_commands.py", "api/test_typescript_client.py",
    "store/test_storm_of_slots.py", "unit/data/test_sql_is_python.py", "store/test_backups.py",
    "e2e/test_streams.py", "store/test_database_users.py", "store/test_round_trips.py", "web/test_lists.py",
    "node/test_clock_watch.py", "e2e/test_up.py", "escape/test_boot_order.py",
    "features/connections/test_connections.py", "unit/data/test_isolation.py", "e2e/test_changes.py",
    "unit/data/test_large_rows.py", "sim/test_worlds.py", "unit/capabilities/test_attempt.py",
    "unit/recurrence/test_english_phrases.py", "web/test_embedding.py", "test_public_api.py",
    "web/test_many_pages.py", "conformance/test_web_platform.py", "deploy/test_reverse_proxy.py",
    "chaos/test_restarts.py", "e2e/test_effects_killed.py", "node/test_linked_modules.py", "api/test_client.py",
    "unit/data/test_collations.py", "api/test_live.py", "unit/data/test_views.py", "escape/test_script_images.py",
    "node/test_typescript.py", "api/test_requests.py", "api/test_description.py", "unit/data/test_odd_tables.py",
    "test_front_door.py", "unit/capabilities/test_fetch.py", "node/test_source_check.py",
    "unit/runtime/test_artefact.py", "escape/test_owned_worker.py", "escape/test_degraded_host.py",
    "features/webhooks/test_webhooks.py", "escape/test_wasm_walls.py", "features/alerts/test_rules.py",
    "store/test_audit.py", "web/test_mounted.py", "store/test_seals.py", "e2e/test_reading_creates_nothing.py",
    "api/test_sessions.py", "e2e/test_places.py",
)  # fmt: skip

#: Long files without fixtures of a module: their tests go to whichever process is free, else one file would outlast all others.
IN_PARTS = (
    "test_wings.py", "chaos/test_upgrades.py", "test_guides.py", "chaos/test_processes.py", "e2e/test_examples.py",
    "conformance/test_intl.py", "sim/test_planted_bugs.py", "escape/test_hostile_arguments.py", "e2e/test_service.py",
    "escape/test_native_libraries.py",
)  # fmt: skip


def scheduler(config: Any, log: Any) -> Any:
    """Return what hands files, and tests of long ones, to the processes of pytest-xdist; None for another distribution."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Parts(LoadFileScheduling):  # type: ignore[misc]  # without types
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return nodeid if file.endswith(tuple(f"tests/{name}" for name in IN_PARTS)) else file

    return Parts(config, log)
