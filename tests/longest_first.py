"""Where a run of the whole suite begins, and what its processes take at a time."""

from typing import Any

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "escape/test_suite_sees.py", "web/test_large_ledgers.py", "test_guides.py", "web/test_tools.py", "web/test_live_pages.py",
    "e2e/test_demo.py", "e2e/test_service.py", "sim/test_worlds.py", "chaos/test_upgrades.py", "chaos/test_cuts.py", "e2e/test_bench.py",
    "conformance/test_intl.py", "features/ledgers/test_silent_ledgers.py", "features/ledgers/test_system.py", "store/test_round_trips.py",
    "store/test_storm_of_slots.py", "escape/test_cases.py", "web/test_lists.py", "test_wheel.py",
    "features/ledgers/test_moves_of_busy_tenants.py", "web/test_every_page.py", "e2e/test_examples.py",
    "features/connections/test_connections.py", "store/test_migrations.py", "api/test_typescript_client.py", "chaos/test_recovery.py",
    "chaos/test_havoc.py", "e2e/test_folder_tests.py", "sim/test_planted_bugs.py", "test_front_door.py", "chaos/test_point_in_time.py",
    "escape/test_owned_worker.py", "api/test_description.py", "e2e/test_effects_killed.py", "unit/runtime/test_artefact.py",
    "deploy/test_reverse_proxy.py", "escape/test_degraded_host.py", "escape/test_native_libraries.py", "test_wings.py",
    "e2e/test_places.py", "api/test_route_table.py", "e2e/test_command_line.py", "e2e/test_beside_node.py", "test_docs.py",
    "e2e/test_nouns.py", "limits/test_native_choice.py", "e2e/test_changes.py", "features/shadows/test_shadows.py",
    "features/openid/test_sign_in.py", "e2e/test_assistants.py", "e2e/test_streams.py", "test_public_api.py", "test_author_tools.py",
    "e2e/test_script_folder.py", "escape/test_wasm_owned_compiler.py", "escape/test_script_images.py",
    "features/documents/test_documents.py", "e2e/test_up.py", "features/ledgers/test_moving.py", "e2e/test_up_waits.py", "e2e/test_dev.py",
    "node/test_soak.py", "limits/test_memory_peak.py", "e2e/test_doctor.py", "api/test_health.py", "store/test_plans.py",
    "sim/test_server.py", "e2e/test_escape.py", "e2e/test_inside_django.py", "web/test_embedding.py", "features/tracing/test_tracing.py",
    "chaos/test_failover.py", "unit/recurrence/test_english_phrases.py", "store/test_hostile_arguments.py",
    "escape/test_hostile_arguments.py", "store/test_async_engine.py", "unit/data/test_sql_is_python.py", "e2e/test_fetch_scripts.py",
    "features/replays/test_replays.py",
)  # fmt: skip

#: Long files without fixtures of a module: their tests go to whichever process is free, else one file would outlast all others.
IN_PARTS = (
    "test_wings.py", "chaos/test_upgrades.py", "chaos/test_processes.py", "chaos/test_cuts.py", "e2e/test_examples.py",
    "conformance/test_intl.py", "sim/test_planted_bugs.py", "escape/test_hostile_arguments.py", "e2e/test_service.py",
    "escape/test_native_libraries.py", "features/ledgers/test_moves_of_busy_tenants.py", "store/test_storm_of_slots.py",
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
