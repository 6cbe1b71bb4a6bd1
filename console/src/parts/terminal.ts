// A terminal in a container: xterm.js over the WebSocket of exec. Loaded when the first terminal opens.
import { type Signal, signal } from "@preact/signals";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { failureOf } from "../data/failure";
import { request } from "../data/requests";
import { input, PROTOCOLS, received, resize } from "../logic/channels";

export interface Place {
  // The API path of the pod.
  path: string;
  pod: string;
  container: string;
  command: string[];
}
export type SessionState = "connecting" | "open" | "ended";
const SCROLLBACK = 5000;

// A session keeps its element: a page that shows it again shows it as it was.
export class Session {
  readonly id = crypto.randomUUID();
  readonly state: Signal<SessionState> = signal<SessionState>("connecting");
  readonly element = document.createElement("div");
  private readonly terminal: Terminal;
  private readonly fitting = new FitAddon();
  private readonly watcher = new ResizeObserver(() => this.fit());
  private readonly socket: WebSocket;
  private ending = "";

  constructor(readonly place: Place) {
    this.element.className = "terminal";
    const styles = getComputedStyle(document.documentElement);
    this.terminal = new Terminal({
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      documentOverride: styledDocument(),
      fontFamily: styles.getPropertyValue("--mono"),
      fontSize: 13,
      screenReaderMode: true,
      scrollback: SCROLLBACK,
      theme: { background: "#10171a", foreground: "#dfe8ea", cursor: "#5cc6cd" },
    });
    this.terminal.loadAddon(this.fitting);
    const words = place.command.map((word) => ["command", word]);
    const streams = ["stdin", "stdout", "tty"].map((name) => [name, "true"]);
    const query = new URLSearchParams([["container", place.container], ...streams, ...words]);
    const target = `${place.path}/exec?${query}`;
    this.socket = new WebSocket(location.origin.replace(/^http/, "ws") + target, PROTOCOLS);
    this.socket.binaryType = "arraybuffer";
    this.socket.onopen = () => {
      this.state.value = "open";
      this.socket.send(resize(this.terminal.cols, this.terminal.rows));
    };
    this.socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      const message = received(data);
      if (message && "output" in message) this.terminal.write(message.output);
      else if (message) this.ending = message.ending;
    };
    this.socket.onclose = () => void this.end(target);
    this.terminal.onData((text) => this.send(input(text)));
    this.terminal.onResize(({ cols, rows }) => this.send(resize(cols, rows)));
  }

  // Puts the terminal into the page.
  show(holder: HTMLElement): void {
    holder.replaceChildren(this.element);
    if (!this.terminal.element) openStyled(this.terminal, this.element);
    this.watcher.observe(holder);
    this.fit();
    this.terminal.focus();
  }

  hide(): void {
    this.watcher.disconnect();
    this.element.remove();
  }

  close(): void {
    this.hide();
    this.socket.onclose = null;
    this.socket.close();
    this.terminal.dispose();
  }

  private fit(): void {
    if (this.element.isConnected && this.element.clientWidth > 0) this.fitting.fit();
  }

  private send(data: Uint8Array<ArrayBuffer>): void {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(data);
  }

  private async end(target: string): Promise<void> {
    const wasOpen = this.state.peek() === "open";
    this.state.value = "ended";
    // A browser hides why a WebSocket was refused; the same request without an upgrade tells.
    const reason = this.ending || (wasOpen ? "The connection has ended." : await refusal(target));
    this.terminal.write(`\r\n\x1b[2m${reason.replaceAll(/[\x00-\x1f\x7f]/g, " ")}\x1b[0m\r\n`);
  }
}

async function refusal(target: string): Promise<string> {
  const { code, message } = await request(target).then(
    () => ({ code: 0, message: "" }),
    (error: unknown) => failureOf(error),
  );
  // 400: only the upgrade was missing.
  return code && code !== 400 ? message : "The container cannot be reached.";
}

// The policy of the page forbids inline styles. xterm.js writes some; the same styles are set through the CSSOM.
function styledElement(tag: string): HTMLElement {
  if (tag === "style") return adoptedStyle();
  const element = plainElement(tag);
  element.setAttribute = (name, value) => {
    if (name === "style") element.style.cssText = value;
    else Element.prototype.setAttribute.call(element, name, value);
  };
  return element;
}

const plainElement = (tag: string): HTMLElement => Document.prototype.createElement.call(document, tag);

const styledDocument = (): Document =>
  new Proxy(document, {
    get(real, key) {
      if (key === "createElement") return styledElement;
      const value = Reflect.get(real, key, real) as unknown;
      return typeof value === "function" ? value.bind(real) : value;
    },
  });

// The scroll bar of xterm.js 6 ignores `documentOverride`.
function openStyled(terminal: Terminal, element: HTMLElement): void {
  const own = document as { createElement?: (tag: string) => HTMLElement };
  own.createElement = styledElement;
  try {
    terminal.open(element);
  } finally {
    delete own.createElement;
  }
}

// Stands for a style element: its text becomes a style sheet of the document.
function adoptedStyle(): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = plainElement("template");
  document.adoptedStyleSheets.push(sheet);
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}
