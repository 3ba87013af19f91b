// One mail with a table of everything that is new since the last one; nothing new, no mail.
// Each value is escaped by the template, whatever users have typed.
import { html, table } from "html";

export default script(async ({ db, kv, mail, now }) => {
  const since = (await kv.get("digest/since")) ?? now.subtract({ days: 1 });
  const fresh = await db.posts.find({ published: { gt: since, lte: now } }, { order: "published", limit: 50, select: ["title", "author"] });
  if (fresh.length > 0) {
    const rows = fresh.map(({ title, author }) => ({ title, author }));
    await mail.send({
      to: "readers@example.com",
      subject: `${fresh.length} new posts`,
      text: rows.map((post) => `${post.title} (${post.author})`).join("\n"),
      html: html`<h1>New since ${since}</h1>${table(rows)}`,
    });
  }
  await kv.set("digest/since", now);
  return fresh.length;
});
