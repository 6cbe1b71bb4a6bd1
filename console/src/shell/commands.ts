// Commands that Search offers. Views and actions add theirs with `register`.
import { openCreate } from "../actions/create";
import { go, HOME, link } from "./router";
import { toggleDensity, toggleTheme } from "./settings";

export interface Command {
  title: string;
  // Further words to find the command by.
  words?: string;
  run: () => void;
}

const COMMANDS: Command[] = [
  { title: "Switch between light and dark", words: "theme", run: toggleTheme },
  { title: "Switch the density of rows", words: "compact comfortable", run: toggleDensity },
  { title: "Create objects from YAML", words: "new apply paste", run: openCreate },
  { title: "Go to Home", words: "overview health", run: () => go(link(HOME)) },
];

// Adds commands for as long as they make sense; returns what removes them.
export function register(commands: Command[]): () => void {
  COMMANDS.push(...commands);
  return () => {
    for (const command of commands) COMMANDS.splice(COMMANDS.indexOf(command), 1);
  };
}
export const allCommands = (): readonly Command[] => COMMANDS;
