const read = (value) => {
  if (typeof value !== "object" || value === null) return value;
  if (typeof value.$instant === "string") return Instant.from(value.$instant);
  if (Array.isArray(value)) return value.map(read);
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, read(each)]));
};
export default async ({ db, kv, action }) => {
  for (const [name, rows] of Object.entries(action.input.rows)) if (rows.length) await db[name].insertMany(rows.map(read));
  for (const [key, value] of Object.entries(action.input.kv)) await kv.set(key, read(value));
};
