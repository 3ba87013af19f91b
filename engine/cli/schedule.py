"""``lodger schedule``: when a script runs."""

import typer

from lodger.engine.cli import views
from lodger.engine.cli.of_verb import Command, add

app = typer.Typer(name="schedule", help="When a script runs.", no_args_is_help=True)

add(
    app,
    Command("create", "schedules.create", ("tenant_id", "name"), view=views.schedule),
    Command("edit", "schedules.edit", view=views.schedule),
    Command("list", "schedules.list", ("tenant_id",), wrap="schedules"),
    Command("show", "schedules.get"),
    Command("revisions", "schedules.revisions", wrap="revisions"),
    Command("diff", "schedules.diff", view=views.schedule_diff),
    Command("rollback", "schedules.rollback", view=views.schedule),
    Command("pause", "schedules.pause", view=views.schedule),
    Command("resume", "schedules.resume", view=views.schedule),
    Command("counters", "schedules.counters"),
    Command("last-run", "schedules.last_run"),
    Command("what-if", "schedules.what_if", view=views.what_if),
    Command("preview", "schedules.preview", view=views.preview),
    Command("delete", "schedules.delete", ask="delete schedule {schedule} of {tenant_id}", view=views.schedule),
)
