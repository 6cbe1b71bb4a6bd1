// The WebSocket protocol of exec (v4 and v5): the first byte of a message names its channel.
export const PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const ERROR = 3;
const RESIZE = 4;

function message(channel: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(data.length + 1);
  bytes[0] = channel;
  bytes.set(data, 1);
  return bytes;
}
export const input = (text: string): Uint8Array<ArrayBuffer> => message(STDIN, new TextEncoder().encode(text));
export const resize = (columns: number, rows: number): Uint8Array<ArrayBuffer> =>
  message(RESIZE, new TextEncoder().encode(JSON.stringify({ Width: columns, Height: rows })));

export type Received = { output: Uint8Array } | { ending: string } | null;
interface Status {
  status?: string;
  message?: string;
  details?: { causes?: { reason?: string; message?: string }[] };
}

// Output, or the sentence that says how the command ended.
export function received(data: ArrayBuffer): Received {
  const bytes = new Uint8Array(data);
  if (bytes[0] === STDOUT || bytes[0] === STDERR) return { output: bytes.subarray(1) };
  if (bytes[0] !== ERROR || bytes.length === 1) return null;
  const text = new TextDecoder().decode(bytes.subarray(1));
  try {
    const status = JSON.parse(text) as Status;
    if (status.status === "Success") return { ending: "The command has ended." };
    const code = status.details?.causes?.find(({ reason }) => reason === "ExitCode")?.message;
    return { ending: code ? `The command has ended with exit code ${code}.` : status.message || text };
  } catch {
    return { ending: text };
  }
}

// The words of a command. Quotes keep spaces together.
export const wordsOf = (text: string): string[] =>
  [...text.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((found) => found[1] ?? found[2] ?? found[3] ?? "");
