// Deletes ended sessions of more than 90 days, a bounded number each night, so that no run holds the database for long.
// What is left over is deleted in the following nights.
const MOST = 500;

export default async function ({ db, now }) {
  const old = await db.sessions.find(
    { state: "ended", ended: { lt: now.minus({ days: 90 }) } }, { order: "ended", limit: MOST, select: "ended" },
  );
  if (old.length > 0) await db.sessions.deleteMany({ id: { in: old.map((session) => session.id) } });
  return { deleted: old.length, more: old.length === MOST };
}
