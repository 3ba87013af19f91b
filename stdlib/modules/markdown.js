// A part of Markdown as HTML: headings, paragraphs, lists, quotes, code, emphasis and links. HTML in the text is escaped.
import { escape } from "html";

const LINK = /\[([^[\]\n]{1,500})\]\(((?:https?:\/\/|mailto:)[^\s()<>"]{1,2000})\)/g;

function inline(text) {
  const kept = [];
  const keep = (html) => `\u0000${kept.push(html) - 1}\u0000`;
  let line = text.replaceAll("\u0000", "");
  line = line.replace(/`([^`\n]+)`/g, (_all, code) => keep(`<code>${escape(code)}</code>`));
  line = line.replace(LINK, (_all, label, url) => keep(`<a href="${escape(url)}">`) + label + keep("</a>"));
  line = escape(line);
  line = line.replace(/\*\*([^*\n]+)\*\*/g, "<strong>$1</strong>").replace(/\*([^*\n]+)\*/g, "<em>$1</em>");
  return line.replace(/\u0000(\d+)\u0000/g, (_all, number) => kept[number]);
}

const BLOCKS = [
  [/^(#{1,6})[ \t]+(.*)$/, (found) => `<h${found[1].length}>${inline(found[2].trim())}</h${found[1].length}>`],
  [/^(?:-{3,}|\*{3,})[ \t]*$/, () => "<hr>"],
];
const LISTS = [
  ["ul", /^[-*+][ \t]+(.*)$/],
  ["ol", /^\d{1,9}[.)][ \t]+(.*)$/],
  ["blockquote", /^>[ \t]?(.*)$/],
];

/** HTML of a text in Markdown. */
export function render(text) {
  if (typeof text !== "string") throw new TypeError("markdown.render: the text must be a string");
  const out = [];
  let paragraph = [];
  let open = "";
  const close = () => {
    if (paragraph.length > 0) out.push(`<p>${inline(paragraph.join("\n"))}</p>`);
    if (open) out.push(`</${open}>`);
    paragraph = [];
    open = "";
  };
  const lines = text.split(/\r\n|\n|\r/);
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at].trimEnd();
    if (/^```/.test(line)) {
      close();
      const code = [];
      while (++at < lines.length && !/^```/.test(lines[at])) code.push(lines[at]);
      out.push(`<pre><code>${escape(code.join("\n"))}</code></pre>`);
      continue;
    }
    const block = BLOCKS.find(([pattern]) => pattern.test(line));
    const list = LISTS.find(([, pattern]) => pattern.test(line));
    if (block) {
      close();
      out.push(block[1](block[0].exec(line)));
    } else if (list) {
      if (open !== list[0]) {
        close();
        open = list[0];
        out.push(`<${open}>`);
      }
      const content = inline(list[1].exec(line)[1]);
      out.push(open === "blockquote" ? `<p>${content}</p>` : `<li>${content}</li>`);
    } else if (line === "") close();
    else {
      if (open) close();
      paragraph.push(line.trimStart());
    }
  }
  close();
  return out.join("\n");
}
