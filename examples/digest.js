// One mail about everything that is new since the last run. `kv` keeps how far it came, and moves only if the run succeeds.
export default async function ({ db, kv, mail, now }) {
  const since = (await kv.get("digest/since")) ?? now.subtract({ days: 1 });
  const fresh = await db.posts.find({ published: { gt: since, lte: now } }, { order: "published", limit: 50 });
  if (fresh.length > 0) {
    await mail.send({
      to: "readers@example.com",
      subject: `${fresh.length} new posts`,
      text: fresh.map((post) => post.title).join("\n"),
    });
  }
  await kv.set("digest/since", now);
  return { posts: fresh.length };
}
