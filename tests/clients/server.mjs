// Starts the scripted server on a free port.
import { spawn } from "node:child_process";
import { once } from "node:events";
import readline from "node:readline";

export const MODEL = "deepseek-v4-flash";

export async function startServer(binary, ...words) {
  const child = spawn(binary, ["0", ...words], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = readline.createInterface({ input: child.stdout });
  const [line] = await Promise.race([
    once(lines, "line"),
    once(child, "exit").then(() => {
      throw new Error(`${binary} ended before it listened`);
    }),
  ]);
  const origin = `http://127.0.0.1:${line.split(" ").at(-1)}`;
  return {
    origin,
    base: `${origin}/v1`,
    async stop() {
      child.stdin.end();
      const [code] = await once(child, "exit");
      if (code !== 0) throw new Error(`the server ended with code ${code}`);
    },
  };
}
