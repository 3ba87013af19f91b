// events: told to the webhooks that the platform has set up for the tenant, when the run has succeeded.

interface Events {
  /** `await events.emit("order.paid", { id: order.id })`: lower-case words with dots between, and up to 64 KiB of JSON. */
  emit(name: string, data?: any): Promise<null>;
}

declare const events: Events;
