// One WebSocket carries all watches and logs of the tab (pilothouse/console/streams.py): browsers open at most six
// HTTP/1.1 connections to a host for all tabs together, and WebSockets do not count.
import { signal } from "@preact/signals";
import { Failure, failureFrom, UNREACHABLE } from "./failure";
import { request } from "./requests";

export type Connection = "idle" | "connected" | "reconnecting";
export const connection = signal<Connection>("idle");

interface Head {
  id: number;
  status?: number;
  body?: string;
  end?: boolean;
  error?: string;
}

interface Channel {
  decoder: TextDecoder;
  parts: string[];
  ended: boolean;
  error: Failure | null;
  wake: () => void;
}

const ID_BYTES = 4;
const channels = new Map<number, Channel>();
let socket: Promise<WebSocket> | null = null;
let lastId = 0;

function connect(): Promise<WebSocket> {
  socket ??= new Promise<WebSocket>((resolve, reject) => {
    const opening = new WebSocket(`${location.origin.replace(/^http/, "ws")}/console/streams`);
    opening.binaryType = "arraybuffer";
    opening.onopen = () => {
      connection.value = "connected";
      resolve(opening);
    };
    opening.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => take(data);
    opening.onclose = () => {
      socket = null;
      connection.value = "reconnecting";
      const failure = new Failure({ code: 0, message: UNREACHABLE });
      for (const channel of channels.values()) end(channel, failure);
      channels.clear();
      reject(failure);
      // Tells an ended session from a console that is away.
      request("/version").catch(() => undefined);
    };
  });
  return socket;
}

function end(channel: Channel, error: Failure | null): void {
  channel.ended = true;
  channel.error ??= error;
  channel.wake();
}

function take(data: string | ArrayBuffer): void {
  if (typeof data !== "string") {
    const channel = channels.get(new DataView(data).getUint32(0));
    channel?.parts.push(channel.decoder.decode(new Uint8Array(data, ID_BYTES), { stream: true }));
    channel?.wake();
    return;
  }
  const head = JSON.parse(data) as Head;
  const channel = channels.get(head.id);
  if (!channel) return;
  if (head.status && head.status !== 200) channel.error = failureFrom(head.status, head.body ?? "");
  if (head.end || channel.error) {
    channels.delete(head.id);
    end(channel, head.error ? new Failure({ code: 502, message: head.error }) : null);
  }
}

// The chunks of a GET as they arrive. Ends with the response. Raises Failure.
async function* chunks(path: string, accept: string, abort: AbortSignal): AsyncGenerator<string> {
  const open = await connect();
  if (abort.aborted) return;
  const id = ++lastId;
  const channel: Channel = { decoder: new TextDecoder(), parts: [], ended: false, error: null, wake: () => undefined };
  channels.set(id, channel);
  open.send(JSON.stringify({ open: id, path, accept }));
  const stop = () => {
    if (channels.delete(id) && open.readyState === WebSocket.OPEN) open.send(JSON.stringify({ close: id }));
    end(channel, null);
  };
  abort.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      if (channel.parts.length) yield channel.parts.splice(0).join("");
      else if (channel.error) throw channel.error;
      else if (channel.ended) return;
      else
        await new Promise<void>((done) => {
          channel.wake = done;
        });
    }
  } finally {
    abort.removeEventListener("abort", stop);
    stop();
  }
}

// The lines of a GET as they arrive. Longer lines than `longest` are cut into several.
export async function* lines(
  path: string,
  accept: string,
  abort: AbortSignal,
  longest = Number.POSITIVE_INFINITY,
): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of chunks(path, accept, abort)) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
    for (; rest.length > longest; rest = rest.slice(longest)) yield rest.slice(0, longest);
  }
  if (rest) yield rest;
}
