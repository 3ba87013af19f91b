// action: what this run is, and why now.
$.provide("action", (context) => {
  $.instant.calendar(context);
  const given = context.action;
  const read = (value) => (value === null || value === undefined ? null : $.instant.read(value.$instant));
  return { ...given, slot: read(given.slot), previousSlot: read(given.previousSlot), upcoming: (given.upcoming || []).map(read) };
});
