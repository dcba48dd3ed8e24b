// The SDKs that people use, against the real server over the obedient model: answers, streams, tool
// loops, structured output and stored responses through each of them.
// usage: node sdk_test.mjs SCRIPTED_SERVER   (needs tools/fetch_test_data.sh)
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readFileSync } from "node:fs";

import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool as agentTool,
} from "@openai/agents";
import { generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

import { MODEL, startServer } from "./server.mjs";

const GREETING = "Hello from the obedient model.";
const SUNNY = "The tool returned: sunny in Paris";
const LOCATION = z.object({ location: z.string() });
const SCHEMA = {
  type: "object",
  properties: { location: { type: "string" } },
  required: ["location"],
  additionalProperties: false,
};

let server;
let openai;
let anthropic;

before(async () => {
  server = await startServer(process.argv[2]);
  openai = new OpenAI({ apiKey: "x", baseURL: server.base, maxRetries: 0 });
  anthropic = new Anthropic({ apiKey: "x", baseURL: server.origin, maxRetries: 0 });
  setTracingDisabled(true);
  globalThis.AI_SDK_LOG_WARNINGS = false;
});

after(() => server.stop());

test("openai: chat, whole and streamed", async () => {
  const messages = [{ role: "user", content: "hi" }];
  const whole = await openai.chat.completions.create({ model: MODEL, messages });
  assert.equal(whole.choices[0].message.content, GREETING);
  assert.equal(whole.choices[0].message.reasoning_content, "Let me see.");
  const stream = openai.chat.completions.stream({
    model: MODEL,
    messages,
    stream_options: { include_usage: true },
  });
  const streamed = await stream.finalChatCompletion();
  assert.equal(streamed.choices[0].message.content, GREETING);
  assert.equal(streamed.usage.prompt_tokens, whole.usage.prompt_tokens);
  assert.equal(streamed.usage.completion_tokens, whole.usage.completion_tokens);
});

test("openai: chat runTools loop, streamed and whole", async () => {
  for (const stream of [true, false]) {
    const runner = openai.chat.completions.runTools({
      model: MODEL,
      stream,
      messages: [{ role: "user", content: "What is the weather?" }],
      tools: [
        {
          type: "function",
          function: {
            name: "get_weather",
            parse: JSON.parse,
            parameters: SCHEMA,
            function: (input) => `sunny in ${input.location}`,
          },
        },
      ],
    });
    assert.equal(await runner.finalContent(), SUNNY);
  }
});

test("openai: responses, stream helper, parse, and the stored response", async () => {
  const made = await openai.responses.create({ model: MODEL, input: "hi" });
  assert.equal(made.output_text, GREETING);
  const types = [];
  const stream = openai.responses.stream({ model: MODEL, input: "hi" });
  for await (const event of stream) types.push(event.type);
  assert.equal((await stream.finalResponse()).output_text, GREETING);
  assert.equal(types[0], "response.created");
  assert.equal(types.at(-1), "response.completed");

  const parsed = await openai.responses.parse({
    model: MODEL,
    input: "Return JSON integer value 7.",
    text: { format: zodTextFormat(z.object({ value: z.number().int() }), "value") },
  });
  assert.deepEqual(parsed.output_parsed, { value: 7 });

  assert.equal((await openai.responses.retrieve(made.id)).output_text, GREETING);
  const replayed = [];
  for await (const event of await openai.responses.retrieve(made.id, { stream: true })) {
    replayed.push(event.type);
  }
  assert.equal(replayed.at(-1), "response.completed");
  const items = [];
  for await (const item of openai.responses.inputItems.list(made.id)) items.push(item);
  assert.equal(items[0].content[0].text, "hi");
  await openai.responses.delete(made.id);
  await assert.rejects(openai.responses.retrieve(made.id), OpenAI.NotFoundError);
});

test("openai: responses tool loop over previous_response_id", async () => {
  const tools = [{ type: "function", name: "get_weather", strict: true, parameters: SCHEMA }];
  const first = await openai.responses.create({ model: MODEL, input: "weather?", tools });
  const call = first.output.find((item) => item.type === "function_call");
  assert.deepEqual(JSON.parse(call.arguments), { location: "Paris" });
  const second = await openai.responses.create({
    model: MODEL,
    tools,
    previous_response_id: first.id,
    input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny in Paris" }],
  });
  assert.equal(second.output_text, SUNNY);
});

test("openai: errors are the SDK's own classes", async () => {
  await assert.rejects(openai.chat.completions.create({ model: "none", messages: [{ role: "user", content: "x" }] }), OpenAI.NotFoundError);
  await assert.rejects(openai.responses.create({ model: MODEL, input: "x", temperature: 9 }), OpenAI.BadRequestError);
  await assert.rejects(openai.responses.create({ model: MODEL, input: "x", previous_response_id: "resp_0" }), (error) => {
    assert.equal(error.code, "previous_response_not_found");
    return true;
  });
});

test("anthropic: messages, whole and streamed, thinking, counting", async () => {
  const request = { model: MODEL, max_tokens: 200, messages: [{ role: "user", content: "hi" }] };
  const plain = await anthropic.messages.create(request);
  assert.deepEqual(plain.content, [{ type: "text", text: GREETING }]);
  assert.equal(plain.stop_reason, "end_turn");
  const thinking = { ...request, thinking: { type: "enabled", budget_tokens: 1024 } };
  const message = await anthropic.messages.stream(thinking).finalMessage();
  assert.deepEqual(message.content.map((block) => block.type), ["thinking", "text"]);
  assert.equal(message.content[0].thinking, "Let me see.");
  const counted = await anthropic.messages.countTokens({ model: MODEL, messages: request.messages });
  assert.equal(counted.input_tokens, plain.usage.input_tokens + plain.usage.cache_read_input_tokens);
});

test("anthropic: a tool loop with streamed input", async () => {
  const tools = [{ name: "get_weather", description: "weather", input_schema: SCHEMA }];
  const messages = [{ role: "user", content: "weather?" }];
  const first = await anthropic.messages
    .stream({ model: MODEL, max_tokens: 500, tools, messages, thinking: { type: "adaptive" } })
    .finalMessage();
  assert.equal(first.stop_reason, "tool_use");
  const call = first.content.find((block) => block.type === "tool_use");
  assert.deepEqual(call.input, { location: "Paris" });
  messages.push({ role: "assistant", content: first.content });
  messages.push({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny in Paris" }],
  });
  const second = await anthropic.messages.create({ model: MODEL, max_tokens: 500, tools, messages });
  assert.equal(second.content[0].text, SUNNY);
  await assert.rejects(anthropic.messages.create({ model: MODEL, messages }), Anthropic.BadRequestError);
});

function aiModels() {
  const options = { name: "local", baseURL: server.base, apiKey: "x" };
  return {
    compatible: createOpenAICompatible({ ...options, includeUsage: true })(MODEL),
    "openai chat": createOpenAI(options).chat(MODEL),
    "openai responses": createOpenAI(options).responses(MODEL),
    anthropic: createAnthropic(options)(MODEL),
    "open-responses": createOpenResponses({ name: "local", url: `${server.base}/responses`, apiKey: "x" })(MODEL),
  };
}

const AI_NAMES = ["compatible", "openai chat", "openai responses", "anthropic", "open-responses"];

for (const name of AI_NAMES) {
  test(`ai (${name}): text`, async () => {
    const made = await generateText({ model: aiModels()[name], prompt: "hi", maxRetries: 0 });
    assert.equal(made.text, GREETING);
    assert.ok(made.usage.inputTokens > 0);
    assert.ok(made.usage.outputTokens > 0);
  });

  test(`ai (${name}): a streamed tool loop`, async () => {
    const result = streamText({
      model: aiModels()[name],
      prompt: "What is the weather?",
      tools: {
        get_weather: tool({
          inputSchema: LOCATION,
          execute: async ({ location }) => `sunny in ${location}`,
        }),
      },
      stopWhen: stepCountIs(3),
      maxRetries: 0,
      onError() {},
    });
    let text = "";
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") text += part.text;
    }
    assert.ok(text.includes("sunny in Paris"), text);
    assert.equal((await result.steps).length, 2);
  });
}

test("ai: an object through a schema", async () => {
  const provider = createOpenAICompatible({
    name: "local",
    baseURL: server.base,
    apiKey: "x",
    supportsStructuredOutputs: true,
  });
  const made = await generateObject({
    model: provider(MODEL),
    schema: z.object({ value: z.number() }),
    prompt: "Return JSON integer value 7.",
    maxRetries: 0,
  });
  assert.deepEqual(made.object, { value: 7 });
});

for (const Model of [OpenAIResponsesModel, OpenAIChatCompletionsModel]) {
  test(`agents (${Model.name}): a streamed loop`, async () => {
    const agent = new Agent({
      name: "agent",
      instructions: "Help.",
      model: new Model(openai, MODEL),
      tools: [
        agentTool({
          name: "get_weather",
          description: "weather",
          parameters: LOCATION,
          execute: async () => "sunny in Paris",
        }),
      ],
    });
    const result = await run(agent, "What is the weather?", { stream: true });
    for await (const _ of result);
    await result.completed;
    assert.ok(result.finalOutput.includes("sunny in Paris"), result.finalOutput);
  });
}

test("every event of a stream is valid against the OpenResponses document", async () => {
  const path = new URL("../data/openresponses/openapi-2026-04-24.json", import.meta.url);
  const document = JSON.parse(readFileSync(path, "utf8"));
  const operation = document.paths["/responses"].post.responses["200"].content["text/event-stream"];
  const ajv = new Ajv({ strict: false });
  addFormats(ajv);
  ajv.addSchema({ $id: "doc", components: document.components });
  const resolve = (reference) => ajv.compile({ $ref: `doc${reference}` });
  const validators = new Map();
  for (const { $ref } of operation.schema.oneOf) {
    const schema = document.components.schemas[$ref.split("/").at(-1)];
    validators.set(schema.properties.type.enum[0], resolve($ref));
  }
  const reply = await fetch(`${server.base}/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: MODEL,
      input: "What is the weather?",
      stream: true,
      reasoning: { effort: "none" },
      tools: [{ type: "function", name: "get_weather", parameters: SCHEMA }],
    }),
  });
  const frames = (await reply.text()).split("\n\n").filter((frame) => frame !== "");
  assert.ok(frames.length > 6);
  for (const frame of frames) {
    const event = JSON.parse(frame.slice(frame.indexOf("data: ") + 6));
    const validate = validators.get(event.type);
    assert.ok(validate, `unknown event ${event.type}`);
    assert.ok(validate(event), `${event.type}: ${ajv.errorsText(validate.errors)}`);
  }
});
