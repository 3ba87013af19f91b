// Copies the contacts of a remote system page by page, with a bearer secret that the script never sees.
// It stops at the rate limit (429) and goes on there in the next run: `kv` keeps the page.
export default script(async ({ db, kv, secrets }) => {
  let page = (await kv.get("sync/page")) ?? 1;
  let copied = 0;
  for (let pages = 0; page !== null && pages < 20; pages += 1) {
    const response = await fetch(`https://crm.example.com/contacts?page=${page}`, {
      headers: { authorization: `Bearer ${secrets.CRM}` },
    });
    if (response.status === 429) break;
    if (!response.ok) throw new Error(`page ${page}: ${response.status}`);
    const { contacts, next } = await response.json();
    for (const contact of contacts) await db.contacts.upsert(contact);
    copied += contacts.length;
    page = next;
  }
  await (page === null ? kv.delete("sync/page") : kv.set("sync/page", page));
  return { copied, continueAt: page };
});
