// mail: sent when the run has succeeded; a run that fails sends nothing.

interface Mail {
  /** `ann@acme.example` or `Ann Example <ann@acme.example>`; domains may have any letters. */
  to: string | string[];
  cc?: string | string[];
  bcc?: string | string[];
  /** One line. */
  subject: string;
  /** With html too, it is the alternative for programs that show no HTML. */
  text?: string;
  /** HTML, for example a template of the module "html". */
  html?: string | { toString(): string; toJSON(): string };
  replyTo?: string;
  /** Name shown beside the platform's own address of the sender. */
  senderName?: string;
  /** At most 10, with 512 KiB in all. */
  attachments?: Attachment[];
}

interface Attachment {
  /** File name, without a path. */
  name: string;
  content: string | Uint8Array;
  /** Such as text/csv, also with a charset; a text is sent as UTF-8. text/plain or application/octet-stream if left out. */
  type?: string;
}

interface MailBox {
  /** Sends a mail when the run has succeeded. */
  send(mail: Mail): Promise<{ messageId: string }>;
}

declare const mail: MailBox;
