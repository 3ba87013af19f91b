// Markdown as HTML by marked, for mails: HTML in the text is escaped, and links lead to http, https and mailto only.
import { escape } from "html";
import { Marked } from "marked";

const safe = (url) => /^(?:https?:\/\/|mailto:)/i.test(url);
const marked = new Marked({
  renderer: {
    html: ({ text }) => escape(text),
    link({ href, tokens }) {
      const label = this.parser.parseInline(tokens);
      return safe(href) ? `<a href="${escape(href)}">${label}</a>` : label;
    },
    image: ({ href, text }) => (safe(href) ? `<img src="${escape(href)}" alt="${escape(text)}">` : escape(text)),
  },
});

/** HTML of a text in Markdown. */
export function render(text) {
  if (typeof text !== "string") throw new TypeError("markdown.render: the text must be a string");
  return marked.parse(text);
}
