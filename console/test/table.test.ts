import { describe, expect, test } from "vitest";
import { compare, filterOf, matching, seconds, sorted, visible, type Row } from "../src/logic/table";

const row = (name: string, ...cells: unknown[]): Row => ({ cells: [name, ...cells], object: { metadata: { name, uid: name, resourceVersion: "1" } } });

describe("tables", () => {
  test("ages are compared as times and names as people read them", () => {
    expect(seconds("2d3h")).toBe(183600);
    expect(seconds("web")).toBeNaN();
    expect(compare("9m", "2h")).toBeLessThan(0);
    expect(compare("web-10", "web-9")).toBeGreaterThan(0);
  });
  test("equal cells are ordered by name, whichever way the column goes", () => {
    const rows = [row("b", 1), row("a", 1), row("c", 0)];
    expect(sorted(rows, 1, true).map((r) => r.cells[0])).toEqual(["a", "b", "c"]);
  });
  test("every word must be found in a row", () => {
    expect(matching([row("web", "Running"), row("db", "Running")], "run web").map((r) => r.cells[0])).toEqual(["web"]);
  });
  test("only rows in sight and around are drawn, of 10,000 too", () => {
    expect(visible(0, 700, 34, 10000)).toEqual({ first: 0, last: 33 });
    const { first, last } = visible(34 * 9990, 700, 34, 10000);
    expect([first, last]).toEqual([9978, 10000]);
    expect(visible(5000, 700, 34, 0)).toEqual({ first: 0, last: 0 });
  });
  test("selectors in the filter go to the server, words stay", () => {
    expect(filterOf("web app=web tier!=db metadata.name=x")).toEqual({ words: "web", labels: "app=web,tier!=db", fields: "metadata.name=x" });
  });
});
