// action: facts about this run and its cause.
$.provide("action", (context) => {
  $.instant.calendar(context);
  const given = context.action;
  const read = (value) => (value === null || value === undefined ? null : $.instant.read(value.$instant));
  const last = given.lastRun;
  return {
    ...given,
    slot: read(given.slot),
    previousSlot: read(given.previousSlot),
    upcoming: (given.upcoming || []).map(read),
    lastRun: last ? { ...last, slot: read(last.slot), startedAt: read(last.startedAt) } : null,
  };
});
