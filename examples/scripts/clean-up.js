// Deletes ended sessions of more than 90 days, a bounded number in a run, so that no run holds the database for long.
// What is left over is deleted a minute later: the run that found it requests the next one, under one key.
const MOST = 200;

export default script(async ({ db, now, schedule }) => {
  const old = await db.sessions.find(
    { state: "ended", ended: { lt: now.subtract({ days: 90 }) } }, { order: "ended", limit: MOST, select: "ended" },
  );
  if (old.length > 0) await db.sessions.deleteMany({ id: { in: old.map((session) => session.id) } });
  if (old.length === MOST) await schedule.runIn({ minutes: 1 }, { key: "clean-up" });
  return old.length;
});
