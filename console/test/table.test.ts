import { describe, expect, test } from "vitest";
import { compare, filterOf, type Row, RowView, seconds, visible } from "../src/logic/table";
import { humanAge, plain, plural, tickingAge } from "../src/logic/words";

const row = (name: string, ...cells: unknown[]): Row => ({
  cells: [name, ...cells],
  object: { metadata: { name, uid: name, resourceVersion: "1" } },
});
const names = (view: RowView) => view.rows.map((each) => each.cells[0]);

describe("tables", () => {
  test("ages are compared as times and names as people read them", () => {
    expect(seconds("2d3h")).toBe(183600);
    expect(seconds("web")).toBeNaN();
    expect(compare("9m", "2h")).toBeLessThan(0);
    expect(compare("web-10", "web-9")).toBeGreaterThan(0);
  });
  test("equal cells are ordered by name in both directions", () => {
    const view = new RowView();
    view.rebuild([row("b", 1), row("a", 1), row("c", 0)], "", { column: 1, descending: true });
    expect(names(view)).toEqual(["a", "b", "c"]);
  });
  test("every word must be found in a row", () => {
    const view = new RowView();
    view.rebuild([row("web", "Running"), row("db", "Running")], "run web", null);
    expect(names(view)).toEqual(["web"]);
  });
  test("a change moves, adds and removes rows as a rebuild would", () => {
    const all = new Map<string, Row>();
    for (let i = 0; i < 200; i++) all.set(`r${i}`, row(`r${i}`, (i * 37) % 101));
    const order = { column: 1, descending: false };
    const view = new RowView();
    view.rebuild(all.values(), "", order);
    for (let turn = 0; turn < 50; turn++) {
      const uid = `r${(turn * 13) % 220}`;
      if (turn % 3 === 0) all.delete(uid);
      else all.set(uid, row(uid, (turn * 29) % 101));
      view.update(all, new Set([uid]));
    }
    const fresh = new RowView();
    fresh.rebuild(all.values(), "", order);
    expect(names(view)).toEqual(names(fresh));
  });
  test("10,000 rows are sorted by few comparisons per change", () => {
    const all = new Map<string, Row>();
    for (let i = 0; i < 10_000; i++) all.set(`r${i}`, row(`r${i}`, `${i % 60}m`));
    const view = new RowView();
    view.rebuild(all.values(), "", { column: 1, descending: false });
    all.set("r5", row("r5", "61m"));
    view.update(all, new Set(["r5"]));
    expect(view.rows.at(-1)!.cells[0]).toBe("r5");
    expect(view.rows).toHaveLength(10_000);
  });
  test("only visible rows and some around are drawn", () => {
    expect(visible(0, 700, 34, 10000)).toEqual({ first: 0, last: 40 });
    const { first, last } = visible(34 * 9990, 700, 34, 10000);
    expect([first, last]).toEqual([9968, 10000]);
    expect(visible(5000, 700, 34, 0)).toEqual({ first: 0, last: 0 });
  });
  test("selectors in the filter go to the server, words stay", () => {
    expect(filterOf("web app=web tier!=db metadata.name=x")).toEqual({
      words: "web",
      labels: "app=web,tier!=db",
      fields: "metadata.name=x",
    });
    expect(filterOf("app in (web, api) ready")).toEqual({ words: "ready", labels: "app in (web,api)", fields: "" });
    expect(filterOf("!canary tier notin (a)").labels).toBe("!canary,tier notin (a)");
  });
});

describe("words", () => {
  test("plurals", () => {
    const kinds = ["NetworkPolicy", "Ingress", "Pod", "Endpoints", "Gateway", "ComponentStatus", "PodMetrics"];
    expect(kinds.map(plural).join()).toBe(
      "NetworkPolicies,Ingresses,Pods,Endpoints,Gateways,ComponentStatuses,PodMetrics",
    );
  });
  test("characters that reorder or hide text are shown as codes", () => {
    expect(plain("a\u202Eb\u200B")).toBe("a⟨U+202E⟩b⟨U+200B⟩");
    expect(plain("日本\n\tünï")).toBe("日本\n\tünï");
  });
  test("ages are printed as kubectl prints them, and tick", () => {
    expect([5, 119, 125, 3600, 7205, 100_000, 400_000].map(humanAge)).toEqual([
      "5s",
      "119s",
      "2m5s",
      "60m",
      "120m",
      "27h",
      "4d15h",
    ]);
    const born = Date.parse("2026-01-01T00:00:00Z");
    expect(tickingAge("10s", born + 10_000, "2026-01-01T00:00:00Z", born + 25_000)).toBe("25s");
    // The clock of the server is an hour ahead: its ages stay right.
    expect(tickingAge("61m", born + 10_000, "2026-01-01T00:00:00Z", born + 130_000)).toBe("63m");
    expect(tickingAge("<none>", 0, undefined, 1)).toBe("<none>");
  });
});
