// Keeps one document per run in a collection, which needs no set-up, and counts them.
export default async function ({ db, now, action }) {
  await db.readings.insert({ at: now, value: action.input?.value ?? 42 });
  return { readings: await db.readings.count({}) };
}
