import { describe, expect, it } from "vitest";
import { quoted } from "../src/actions/catalog";
import type { KubeObject } from "../src/data/objects";
import { input, received, resize, wordsOf } from "../src/logic/channels";
import {
  containersOf,
  defaultContainer,
  downloadOf,
  highlighted,
  LogBuffer,
  lineOf,
  logCommand,
  logQuery,
  selectorOf,
  sourceOf,
} from "../src/logic/logs";

const pod = (spec: object, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", uid: "u1", resourceVersion: "1", annotations },
  spec,
});
const source = sourceOf(pod({}), "c", "/p");
const line = (second: number, text: string) =>
  lineOf(`2026-01-01T00:00:${String(second).padStart(2, "0")}Z ${text}`, source);

describe("logs", () => {
  it("knows main, init and ephemeral containers, and the default container", () => {
    const spec = {
      containers: [{ name: "a" }, { name: "b" }],
      initContainers: [{ name: "i" }],
      ephemeralContainers: [{ name: "e" }],
    };
    expect(containersOf(pod(spec)).map(({ name, role }) => `${name}:${role}`)).toEqual([
      "a:main",
      "b:main",
      "i:init",
      "e:ephemeral",
    ]);
    expect(defaultContainer(pod(spec))).toBe("a");
    expect(defaultContainer(pod(spec, { "kubectl.kubernetes.io/default-container": "b" }))).toBe("b");
  });
  it("parts the time stamp from the text, and drops colours", () => {
    const found = lineOf("2026-01-01T00:00:01.250000001Z \u001b[31mred\u001b[0m\r", source);
    expect(found).toMatchObject({ time: "2026-01-01T00:00:01.250000001Z", text: "red" });
    expect(found.at % 1000).toBeCloseTo(250, 2);
    expect(lineOf("no stamp", source).text).toBe("no stamp");
  });
  it("interleaves several logs by time", () => {
    const buffer = new LogBuffer();
    buffer.add([line(1, "a"), line(4, "d")]);
    buffer.add([line(2, "b"), line(3, "c")]);
    expect(buffer.lines.map(({ text }) => text).join("")).toBe("abcd");
  });
  it("keeps a bounded number of lines and characters", () => {
    const few = new LogBuffer(3);
    few.add([1, 2, 3, 4, 5].map((second) => line(second, String(second))));
    expect([few.lines.map(({ text }) => text).join(""), few.dropped]).toEqual(["345", 2]);
    const short = new LogBuffer(100, 10);
    short.add([line(1, "x".repeat(8)), line(2, "y".repeat(8))]);
    expect(short.lines.map(({ text }) => text)).toEqual(["y".repeat(8)]);
  });
  it("makes blocks that stay the same while lines are added and dropped", () => {
    const buffer = new LogBuffer(250);
    const add = (count: number) => buffer.add(Array.from({ length: count }, (_, i) => line(1, String(i))));
    add(250);
    const [, second] = buffer.blocks();
    add(60);
    const after = buffer.blocks();
    expect(after.map(({ lines }) => lines.length)).toEqual([40, 100, 100, 10]);
    expect(after[1]).toEqual(second);
  });
  it("asks for the last lines, for a time, or for what follows a line", () => {
    const options = { previous: false, follow: true, since: 0 };
    expect(logQuery(options, "c")).toEqual({ container: "c", timestamps: "true", follow: "true", tailLines: "500" });
    expect(logQuery({ ...options, since: 60 }, "c")).toMatchObject({ sinceSeconds: "60" });
    expect(logQuery(options, "c", "2026-01-01T00:00:01Z")).toMatchObject({ sinceTime: "2026-01-01T00:00:01Z" });
    expect(logQuery({ ...options, previous: true }, "c")).not.toHaveProperty("follow");
  });
  it("shows the kubectl command", () => {
    const of = { previous: false, follow: true, since: 600, namespace: "shop", selector: "app=web", timestamps: true };
    expect(logCommand({ ...of, pod: "web", container: "c" }, quoted)).toBe(
      "kubectl logs pod/web --namespace=shop --container=c --since=10m --follow --timestamps",
    );
    expect(logCommand({ ...of, since: 0, pod: "", container: "", timestamps: false }, quoted)).toBe(
      "kubectl logs --selector=app=web --prefix --max-log-requests=20 --namespace=shop --all-containers --tail=500 --follow",
    );
  });
  it("writes selectors of workloads and services", () => {
    expect(selectorOf(pod({ selector: { app: "web" } }))).toBe("app=web");
    const matchExpressions = [
      { key: "a", operator: "In", values: ["b", "c"] },
      { key: "d", operator: "DoesNotExist" },
    ];
    expect(selectorOf(pod({ selector: { matchLabels: { app: "web" }, matchExpressions } }))).toBe(
      "app=web,a in (b,c),!d",
    );
    expect(selectorOf(pod({}))).toBe("");
  });
  it("marks matches, whatever their case", () => {
    expect(highlighted("An error, an Error", "error")).toEqual(["An ", "error", ", an ", "Error", ""]);
    expect(downloadOf([line(1, "a")], true)).toBe("2026-01-01T00:00:01Z [web/c] a\n");
  });
});

describe("terminals", () => {
  const status = (text: string) => received(new Uint8Array([3, ...new TextEncoder().encode(text)]).buffer);
  it("writes input and sizes to their channels", () => {
    expect([...input("a")]).toEqual([0, 97]);
    expect(new TextDecoder().decode(resize(80, 24))).toBe('\u0004{"Width":80,"Height":24}');
  });
  it("reads output, and how a command ended", () => {
    expect(received(new Uint8Array([1, 97]).buffer)).toEqual({ output: new Uint8Array([97]) });
    expect(received(new Uint8Array([1]).buffer)).toEqual({ output: new Uint8Array([]) });
    expect(status('{"status":"Success"}')).toEqual({ ending: "The command has ended." });
    const causes = [{ reason: "ExitCode", message: "3" }];
    expect(status(JSON.stringify({ status: "Failure", details: { causes } }))).toEqual({
      ending: "The command has ended with exit code 3.",
    });
    expect(status('{"status":"Failure","message":"no such container"}')).toEqual({ ending: "no such container" });
  });
  it("parts a command into words", () => {
    expect(wordsOf(`sh -c "echo a b" 'c d'`)).toEqual(["sh", "-c", "echo a b", "c d"]);
  });
});
