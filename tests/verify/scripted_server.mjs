// A server that answers every gate of `tandem verify` perfectly, and one switch per fault.
// It shares no code with the product. `fault` is the name of one entry of faults.mjs, or ''.
import http from 'node:http';
import { newId } from './scripted_ids.mjs';
import { messages } from './scripted_messages.mjs';
import { think } from './scripted_model.mjs';

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const pieces = (text) => text.match(/\S+\s*|\s+/g) ?? [];
const count = (text) => pieces(text).length;
const prefixLength = (a, b) => {
  let i = 0;
  while (i < a.length && i < b.length && a[i] === b[i]) ++i;
  return i;
};

export class ScriptedServer {
  constructor(fault = '') {
    this.fault = fault;
    this.stored = new Map();
    this.seen = [];
    this.asked = new Map();
    this.running = 0;
    this.tokens = 0;
    this.success = 0;
    this.drafted = 0;
    this.lookups = 0;
    this.server = http.createServer((request, response) => {
      this.handle(request, response).catch((error) => {
        response.statusCode = 500;
        response.end(String(error.stack));
      });
    });
  }

  is(name) {
    return this.fault === name;
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  json(response, status, body) {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  }

  error(response, status, message, param = null) {
    this.json(response, status, {
      error: { message, type: 'invalid_request_error', param, code: null },
    });
  }

  async handle(request, response) {
    let text = '';
    for await (const part of request) text += part;
    const path = request.url.split('?')[0];
    if (request.method === 'POST') {
      let body;
      try {
        body = JSON.parse(text);
      } catch {
        if (this.is('errors_broken_json_accepted')) return this.json(response, 200, {});
        if (this.is('errors_html')) return response.writeHead(400).end('<html>bad</html>');
        return this.error(response, 400, 'not JSON');
      }
      if (path === '/v1/chat/completions') return this.chat(body, request, response);
      if (path === '/v1/responses') return this.responses(body, response);
      if (path.startsWith('/v1/messages') && this.is('no_messages')) return this.error(response, 404, `no such path ${path}`);
      if (path === '/v1/messages') return messages(this, body, response);
      if (path === '/v1/messages/count_tokens') {
        const n = count(body.messages[0].content);
        return this.json(response, 200, { input_tokens: this.is('messages_count_zero') ? 0 : n });
      }
      if (path === '/tokenize') {
        return this.json(response, 200, { count: count(body.messages[0].content) });
      }
    }
    if (path === '/v1/models') return this.models(response);
    if (path.startsWith('/v1/models/')) {
      if (this.is('models_no_by_id')) return this.error(response, 404, 'no such model');
      return this.json(response, 200, { id: 'scripted', object: 'model' });
    }
    if (path === '/health') return this.health(response);
    if (path === '/metrics') return this.metrics(response);
    if (path.startsWith('/v1/responses/')) return this.storedResponse(request, path, response);
    if (this.is('errors_404_plain')) return response.writeHead(404).end('not found');
    return this.error(response, 404, `no such path ${path}`);
  }

  models(response) {
    const entry = { id: 'scripted', object: 'model' };
    if (this.is('models_status')) return this.json(response, 500, { data: [entry] });
    if (this.is('models_not_listed')) return this.json(response, 200, { data: [{ id: 'other' }] });
    if (this.is('models_no_list')) return this.json(response, 200, { models: [entry] });
    this.json(response, 200, { object: 'list', data: this.is('models_twice') ? [entry, entry] : [entry] });
  }

  health(response) {
    if (this.is('silent')) return this.onSilence();
    const alive = !this.is('health_rank_dead');
    this.json(response, this.is('health_red') ? 503 : 200, {
      status: 'ok',
      ranks: [{ rank: 0, alive: true }, { rank: 1, alive }],
    });
  }

  metrics(response) {
    const tokens = this.is('disconnect_counter_falls') && this.fell ? 0 : this.tokens;
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4' });
    response.end(
      `# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name="scripted"} ${this.running}\n` +
        `vllm:num_requests_waiting{model_name="scripted"} 0\n` +
        `vllm:generation_tokens_total{model_name="scripted"} ${tokens}\n` +
        `vllm:request_success_total{finished_reason="stop"} ${this.success}\n` +
        `vllm:request_success_total{finished_reason="length"} 0\n` +
        `vllm:prefix_cache_queries_total{model_name="scripted"} ${this.fault === 'disconnect_cache_counter_falls' && this.fell ? 0 : this.lookups}\n` +
        `vllm:prefix_cache_hits_total{model_name="scripted"} 0\n` +
        (this.is('no_draft_metrics') ? '' : `vllm:spec_decode_num_draft_tokens_total{model_name="scripted"} ${this.drafted}\n`),
    );
  }

  usageOf(promptText, completion) {
    let cached = 0;
    const words = pieces(promptText);
    for (const old of this.seen) cached = Math.max(cached, prefixLength(old, words));
    this.seen.push(words);
    cached = Math.floor(Math.min(cached, words.length) / 128) * 128;
    if (this.is('multiturn_never_cached')) cached = 0;
    if (this.is('multiturn_cached_over_prompt') && cached > 0) cached = words.length + 1;
    return { prompt: words.length, cached, completion };
  }

  // ---- chat -------------------------------------------------------------------------------

  async chat(body, request, response) {
    if (!Array.isArray(body.messages)) {
      if (this.is('errors_no_messages_accepted')) return this.json(response, 200, {});
      return this.error(response, 400, 'messages is missing', 'messages');
    }
    if (body.model !== 'scripted') {
      if (this.is('errors_unknown_model_accepted')) return this.json(response, 200, {});
      return this.error(response, 404, 'no such model', 'model');
    }
    if (body.temperature !== undefined && typeof body.temperature !== 'number') {
      if (this.is('errors_wrong_type_accepted')) return this.json(response, 200, {});
      if (this.is('errors_field_not_named')) return this.error(response, 400, 'bad request');
      return this.error(response, 400, 'temperature is string; expected a number', 'temperature');
    }
    if (body.speculation !== undefined && this.is('no_speculation_field')) {
      return this.error(response, 400, 'unknown field speculation', 'speculation');
    }
    ++this.lookups;
    const drafts = body.speculation !== false || this.is('speculation_ignored');
    if (drafts && !this.is('no_drafts')) this.drafted += 5;
    const answer = this.chatAnswer(body);
    if (answer.endless) return this.endless(body, request, response);
    this.tokens += answer.completion;
    ++this.success;
    if (body.stream) return this.chatStream(body, answer, response);
    const object = this.chatObject(body, answer);
    this.json(response, answer.status, object);
  }

  chatAnswer(body) {
    const wantsThinking = body.chat_template_kwargs?.thinking === true;
    const tools = (body.tools ?? []).map((t) => ({ name: t.function.name }));
    const prompt = body.messages.map((m) => `${m.role}: ${m.content}`).join('\n');
    const { reasoning, text, call } = think(body.messages, tools, null, wantsThinking);
    const answer = { status: 200, reasoning, text, call, finish: call ? 'tool_calls' : 'stop' };
    const last = body.messages.at(-1);
    if (last.role === 'user' && last.content.includes('long numbered list')) answer.endless = true;
    if (last.role === 'assistant') this.assistantFinal(answer);
    this.limitThinking(body, answer);
    this.applyStop(body, answer);
    if (!call) {
      const words = pieces(answer.text);
      if (words.length > body.max_tokens) {
        answer.text = words.slice(0, body.max_tokens).join('');
        answer.finish = 'length';
      }
    } else if (body.max_tokens < 18) {
      this.truncateCall(answer);
    }
    this.distort(body, answer, prompt);
    if (body.speculation === false) {
      if (this.is('speculation_changes_text')) answer.text += ' Bye.';
      if (this.is('speculation_changes_finish')) answer.finish = 'length';
      if (this.is('speculation_loses_answer')) answer.text = '';
    }
    answer.reasoningTokens = count(answer.reasoning);
    answer.completion = Math.max(1, count(answer.text) + answer.reasoningTokens + (call ? 18 : 0));
    answer.usage = this.usageOf(prompt, answer.completion);
    return answer;
  }

  assistantFinal(answer) {
    answer.text = this.is('assistant_final_empty') ? '' : 'READY';
    if (this.is('assistant_final_markup')) answer.text = '</think>READY';
    if (this.is('assistant_final_refused')) answer.status = 400;
  }

  limitThinking(body, answer) {
    const budget = body.thinking_token_budget;
    if (budget === undefined) return;
    if (!this.is('budget_ignored')) {
      answer.reasoning = pieces(answer.reasoning).slice(0, budget).join('');
    }
    if (this.is('budget_no_answer')) answer.text = '';
    if (this.is('budget_refused')) answer.status = 400;
  }

  applyStop(body, answer) {
    for (const stop of body.stop ?? []) {
      if (this.is('stop_inside_thinking') && answer.reasoning.includes(stop)) answer.text = '';
      if (this.is('stop_ignored')) continue;
      const cut = answer.text.indexOf(stop);
      if (cut >= 0) {
        answer.text = answer.text.slice(0, this.is('stop_kept_in_text') ? cut + stop.length : cut);
        answer.finish = this.is('stop_reported_as_length') ? 'length' : 'stop';
      }
    }
  }

  truncateCall(answer) {
    if (this.is('truncated_broken_json')) {
      answer.call = { ...answer.call, arguments: '{"city": "Pa' };
      return;
    }
    answer.call = null;
    answer.finish = this.is('truncated_as_tool_calls') ? 'tool_calls' : 'length';
    if (this.is('truncated_leaks_markup')) answer.text = '<｜DSML｜tool_calls>\n<｜DSML｜inv';
  }

  // Faults of the answer itself, each limited to the question of one gate.
  distort(body, answer, prompt) {
    const last = body.messages.at(-1).content;
    const asked = (this.asked.get(prompt) ?? 0) + 1;
    if (last.startsWith('Count') && body.n === undefined && !body.stop) {
      if (this.is('warm_differs') && asked > 1 && body.temperature === 0) answer.text += ' warm';
      if (this.is('seed_ignored') && body.temperature === 1) answer.text += ` ${asked}`;
      if (this.is('counting_empty')) answer.text = '';
      this.asked.set(prompt, asked);
    }
    if (last.includes('secret code?') && this.is('recall_forgets')) answer.text = '12345';
    if (last.includes('ACK2') && this.is('multiturn_wrong_answer')) answer.text = 'READY';
    const deep = count(prompt) > 250 && count(prompt) < 4000 && last.includes('exactly READY');
    if (deep && this.is('garble_replacement')) answer.text = 'RE\uFFFDDY';
    if (deep && this.is('garble_loop')) answer.text = 'the same '.repeat(40);
    if (deep && this.is('garble_control')) answer.text = 'READY\u0001';
    if (deep && this.is('garble_mark')) answer.text = 'READY<｜User｜>';
    if (deep && this.is('garble_empty')) answer.text = '';
    if (last.includes('Tom is 12')) {
      if (this.is('chat_schema_extra_key')) answer.text = '{"name": "Tom", "age": 12, "x": 1}';
      if (this.is('chat_schema_fenced')) answer.text = '```json\n{"name": "Tom", "age": 12}\n```';
      if (this.is('chat_schema_range')) answer.text = '{"name": "Tom", "age": 1200}';
    }
    if (body.messages[0].role === 'system' && answer.call) {
      if (this.is('deep_tools_broken_arguments')) answer.call.arguments = '{"city": "Par';
      if (this.is('deep_tools_wrong_argument')) answer.call.arguments = '{"city": "The baker"}';
      if (this.is('deep_tools_leaks_system')) answer.text = body.messages[0].content;
      if (this.is('deep_tools_leaks_schema')) answer.text = JSON.stringify(body.tools[0]);
      if (this.is('deep_tools_markup')) answer.text = '</｜DSML｜tool_calls>';
      if (this.is('deep_tools_no_call')) answer.call = null;
    }
    if (body.tools && body.max_tokens === 256 && answer.call) {
      if (this.is('tools_broken_arguments')) answer.call.arguments = '{"city": "Paris"';
      if (this.is('tools_wrong_argument')) answer.call.arguments = '{"city": "London"}';
      if (this.is('tools_extra_argument')) answer.call.arguments = '{"city": "Paris", "x": 1}';
      if (this.is('tools_wrong_name')) answer.call.name = 'weather';
      if (this.is('tools_finish_stop')) answer.finish = 'stop';
      if (this.is('tools_markup_leaks')) answer.text = '</｜DSML｜tool_calls>';
    }
  }

  usageObject(usage) {
    return {
      prompt_tokens: usage.prompt,
      completion_tokens: usage.completion,
      total_tokens: usage.prompt + usage.completion,
      prompt_tokens_details: { cached_tokens: usage.cached },
    };
  }

  chatObject(body, answer) {
    const message = { role: 'assistant', content: answer.text };
    if (answer.reasoning) message.reasoning_content = answer.reasoning;
    if (answer.call) {
      message.content = answer.text === '' ? null : answer.text;
      message.tool_calls = [{ id: newId('call'), type: 'function', function: answer.call }];
    }
    const plain = body.max_tokens === 64 && body.messages.length === 1;
    const usage = this.usageObject(answer.usage);
    usage.completion_tokens_details = { reasoning_tokens: answer.reasoningTokens };
    let finish = answer.finish;
    if (plain) {
      if (this.is('chat_wrong_answer')) message.content = 'Ready!';
      if (this.is('chat_finish_length')) finish = 'length';
      if (this.is('chat_total_wrong')) usage.total_tokens += 1;
      if (this.is('chat_cached_missing')) delete usage.prompt_tokens_details;
      if (this.is('chat_status')) answer.status = 500;
    }
    const choice = { index: 0, message, finish_reason: finish, logprobs: null };
    if (body.logprobs) choice.logprobs = this.logprobs(answer.text);
    const choices = Array.from({ length: body.n ?? 1 }, (_, index) => ({ ...choice, index }));
    if (body.n) {
      if (this.is('n_only_one')) choices.length = 1;
      if (this.is('n_index_zero')) choices.forEach((c) => (c.index = 0));
      if (this.is('n_mixed')) choices[2] = { ...choices[2], message: { role: 'assistant', content: '1, 1, 2' } };
    }
    return { id: newId('chatcmpl'), object: 'chat.completion', created: 1, model: 'scripted', choices, usage };
  }

  logprobs(text) {
    if (this.is('logprobs_missing')) return null;
    let content = pieces(text).map((token) => ({
      token,
      logprob: -0.1,
      bytes: null,
      top_logprobs: [-0.1, -3, -4].map((logprob, i) => ({ token: i ? `t${i}` : token, logprob })),
    }));
    if (this.is('logprobs_positive')) content[0].logprob = 0.5;
    if (this.is('logprobs_null')) content[0].logprob = null;
    if (this.is('logprobs_few_top')) content[0].top_logprobs.length = 1;
    if (this.is('logprobs_unsorted')) content[0].top_logprobs[0].logprob = -7;
    if (this.is('logprobs_other_text')) content = content.map((c) => ({ ...c, token: '?' }));
    return { content };
  }

  async chatStream(body, answer, response) {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const tools = Boolean(body.tools);
    const id = newId('chatcmpl');
    const base = { id, object: 'chat.completion.chunk', created: 1, model: 'scripted' };
    const send = (extra) => response.write(`data: ${JSON.stringify({ ...base, ...extra })}\n\n`);
    const delta = (d, finish = null) => send({ choices: [{ index: 0, delta: d, finish_reason: finish }] });
    const plain = !tools;
    if (plain && this.is('chat_stream_event_line')) response.write('event: chunk\n');
    delta(plain && this.is('chat_stream_no_role') ? { content: '' } : { role: 'assistant', content: '' });
    if (answer.call) this.streamCall(delta, answer);
    else for (const piece of pieces(this.is('chat_stream_wrong_text') ? 'RADY' : answer.text)) delta({ content: piece });
    if (tools && this.is('tools_stream_markup')) delta({ content: '<｜DSML｜tool_calls>' });
    if (plain && this.is('chat_stream_id_changes')) base.id = newId('chatcmpl');
    if (!(plain && this.is('chat_stream_no_finish'))) delta({}, answer.finish);
    if (plain && this.is('chat_stream_two_finishes')) delta({}, answer.finish);
    if (plain && this.is('chat_stream_late_delta')) delta({ content: 'late' });
    if (body.stream_options?.include_usage && !(plain && this.is('chat_stream_no_usage'))) {
      const usage = this.usageObject(answer.usage);
      if (plain && this.is('chat_stream_usage_no_choices')) send({ usage });
      else send({ choices: [], usage });
    }
    if (plain && this.is('chat_stream_cut')) {
      response.write('data: {"id": "x');
      return response.end();
    }
    if (!(plain && this.is('chat_stream_no_done'))) response.write('data: [DONE]\n\n');
    if (plain && this.is('chat_stream_after_done')) delta({ content: 'ghost' });
    response.end();
  }

  streamCall(delta, answer) {
    const head = { index: 0, id: newId('call'), type: 'function', function: { name: answer.call.name, arguments: '' } };
    if (this.is('tools_stream_no_index')) delete head.index;
    if (this.is('tools_stream_no_id')) delete head.id;
    delta({ tool_calls: [head] });
    for (const piece of answer.call.arguments.match(/.{1,4}/g)) {
      const part = { index: 0, function: { arguments: piece } };
      if (this.is('tools_stream_repeats_name')) part.function.name = answer.call.name;
      delta({ tool_calls: [part] });
    }
    if (this.is('tools_stream_two_calls')) {
      delta({ tool_calls: [{ index: 1, id: newId('call'), type: 'function', function: { name: 'x', arguments: '{}' } }] });
    }
  }

  async endless(body, request, response) {
    let gone = false;
    response.on('close', () => (gone = true));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    ++this.running;
    const chunk = { id: newId('chatcmpl'), object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: '1. item\n' } }] };
    while (!gone) {
      if (!this.is('disconnect_not_running')) ++this.tokens;
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
      await sleep(5);
    }
    if (this.is('disconnect_counted')) ++this.success;
    if (this.is('disconnect_runs_on')) this.tokens += 500;
    if (this.is('disconnect_counter_falls') || this.is('disconnect_cache_counter_falls')) this.fell = true;
    if (this.is('disconnect_stuck')) {
      setTimeout(() => (this.running = 0), 33000);
      return;
    }
    --this.running;
    if (this.is('disconnect_not_quiet')) {
      const end = Date.now() + 2500;
      while (Date.now() < end) {
        ++this.tokens;
        await sleep(150);
      }
    }
  }

  // ---- responses --------------------------------------------------------------------------

  responses(body, response) {
    if (body.include?.includes('not_supported') && !this.is('bad_field_accepted')) {
      if (this.is('bad_field_plain')) return response.writeHead(400).end('no');
      return this.error(response, 400, 'include: not_supported is unknown', 'include');
    }
    let messages = typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input;
    if (body.previous_response_id) {
      const parent = this.stored.get(body.previous_response_id);
      if (this.is('continuation_404')) return this.error(response, 404, 'no store');
      if (!parent && !this.is('continuation_unknown_accepted')) {
        return this.error(response, 400, 'unknown previous_response_id');
      }
    }
    messages = messages.filter((m) => m.role);
    const effort = body.reasoning?.effort ?? 'low';
    const tools = (body.tools ?? []).map((t) => ({ name: t.name }));
    const answer = think(messages, tools, body.text, effort !== 'none');
    this.distortResponses(body, answer);
    const object = this.responseObject(body, answer);
    if (body.store || this.is('store_false_kept')) this.stored.set(object.id, object);
    this.tokens += 5;
    ++this.success;
    if (body.stream) return this.responsesStream(object, response);
    const readsResponses = body.input === 'Reply with exactly RESPONSES.';
    if (readsResponses && this.is('responses_status')) return this.json(response, 500, object);
    this.json(response, 200, object);
  }

  distortResponses(body, answer) {
    const input = JSON.stringify(body.input);
    if (input.includes('TOOL_OK') && this.is('continuation_forgets')) answer.text = 'What tool?';
    if (input.includes('value 7')) {
      if (this.is('schema_wrong_value')) answer.text = '{"value": 8}';
      if (this.is('schema_string')) answer.text = '{"value": "7"}';
      if (this.is('schema_extra_key')) answer.text = '{"value": 7, "note": "x"}';
      if (this.is('schema_fenced')) answer.text = '```json\n{"value": 7}\n```';
    }
    if (input.includes('REASONED')) {
      if (this.is('reasoning_absent')) answer.reasoning = '';
      if (this.is('reasoning_in_text')) answer.text = `${answer.reasoning} REASONED`;
    }
  }

  responseObject(body, answer) {
    const output = [];
    if (answer.reasoning) {
      output.push({ type: 'reasoning', id: newId('rs'), summary: [], content: [{ type: 'reasoning_text', text: answer.reasoning }] });
    }
    if (answer.call) this.pushCalls(output, answer.call);
    else {
      output.push({ type: 'message', id: newId('msg'), role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: answer.text, annotations: [], logprobs: [] }] });
    }
    const object = {
      id: newId('resp'), object: 'response', created_at: 1, model: 'scripted', status: 'completed', output,
      usage: {
        input_tokens: 7, output_tokens: 3, total_tokens: 10,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens_details: { reasoning_tokens: count(answer.reasoning) },
      },
    };
    if (body.input === 'Reply with exactly RESPONSES.' && !body.stream) {
      if (this.is('responses_wrong_answer')) output[0].content[0].text = 'RESPONSE';
      if (this.is('responses_no_usage')) object.usage = null;
      if (this.is('responses_usage_float')) object.usage.input_tokens = 7.5;
      if (this.is('responses_in_progress')) object.status = 'in_progress';
    }
    return object;
  }

  pushCalls(output, call) {
    const item = { type: 'function_call', id: newId('fc'), call_id: newId('call'), name: call.name, arguments: call.arguments, status: 'completed' };
    if (this.is('responses_tool_none')) return;
    if (this.is('responses_tool_name')) item.name = 'pong';
    if (this.is('responses_tool_arguments')) item.arguments = '';
    if (this.is('responses_tool_no_call_id')) item.call_id = '';
    output.push(item);
    if (this.is('responses_tool_twice')) output.push({ ...item, id: newId('fc'), call_id: newId('call') });
  }

  responsesStream(object, response) {
    response.writeHead(200, { 'content-type': this.is('stream_content_type') ? 'application/json' : 'text/event-stream' });
    let sequence = this.is('stream_sequence_from_one') ? 1 : 0;
    const send = (type, fields) => {
      const data = { type, ...fields };
      if (!this.is('stream_no_sequence')) data.sequence_number = sequence;
      sequence += this.is('stream_sequence_gap') && sequence === 3 ? 2 : 1;
      const name = this.is('stream_event_name') && type.endsWith('delta') ? 'message' : type;
      const line = this.is('stream_no_event_line') ? '' : `event: ${name}\n`;
      response.write(`${line}data: ${JSON.stringify(data)}\n\n`);
    };
    const message = object.output[0];
    const text = message.content[0].text;
    const place = { output_index: 0, content_index: 0, item_id: message.id };
    const skeleton = { ...object, output: [], status: 'in_progress', usage: null };
    send('response.created', { response: skeleton });
    send('response.in_progress', { response: this.is('stream_response_id_changes') ? { ...skeleton, id: newId('resp') } : skeleton });
    if (this.is('stream_comment')) response.write(': ping\n\n');
    if (this.is('stream_id_field')) response.write('id: 7\n');
    const added = { output_index: 0, item: { ...message, content: [], status: 'in_progress' } };
    if (!this.is('stream_no_item_added')) send('response.output_item.added', added);
    if (this.is('stream_item_added_twice')) send('response.output_item.added', added);
    const part = { type: 'output_text', text: '', annotations: [] };
    send('response.content_part.added', { ...place, part });
    for (const piece of (this.is('stream_wrong_text') ? 'RESPONDED' : text).match(/.{1,3}/g)) {
      const where = this.is('stream_item_id_changes') ? { ...place, item_id: newId('msg') } : place;
      send('response.output_text.delta', { ...where, delta: piece, logprobs: [] });
    }
    if (this.is('stream_empty_item_id')) send('response.output_text.delta', { ...place, item_id: '', delta: '' });
    if (this.is('stream_unknown_event')) send('response.output_text.annotation', place);
    send('response.output_text.done', { ...place, text, logprobs: [] });
    send('response.content_part.done', { ...place, part: { ...part, text } });
    if (!this.is('stream_no_item_done')) send('response.output_item.done', { output_index: 0, item: message });
    this.endResponses(object, response, send, place);
  }

  endResponses(object, response, send, place) {
    const final = structuredClone(object);
    if (this.is('stream_final_ids_differ')) final.output[0].id = newId('msg');
    if (this.is('stream_final_text_differs')) final.output[0].content[0].text = 'RESPONSE';
    if (this.is('stream_final_empty')) final.output = [];
    if (this.is('stream_no_final_usage')) final.usage = null;
    if (this.is('stream_cut')) {
      response.write('event: response.completed\ndata: {"type": "resp');
      return response.destroy();
    }
    if (this.is('stream_incomplete')) send('response.incomplete', { response: final });
    else if (!this.is('stream_no_terminal')) send('response.completed', { response: final });
    if (this.is('stream_two_terminals')) send('response.completed', { response: final });
    if (this.is('stream_late_delta')) send('response.output_text.delta', { ...place, delta: '' });
    if (this.is('stream_done_mark')) response.write('data: [DONE]\n\n');
    response.end();
  }

  storedResponse(request, path, response) {
    const id = path.slice('/v1/responses/'.length);
    const object = this.stored.get(id);
    if (request.method === 'DELETE') {
      if (!this.is('store_delete_ignored')) this.stored.delete(id);
      if (this.is('store_delete_refused')) return this.error(response, 405, 'no');
      return this.json(response, 200, { id, object: 'response', deleted: true });
    }
    if (!object || this.is('store_get_missing')) return this.error(response, 404, 'no such response');
    if (this.is('store_other_output')) return this.json(response, 200, { ...object, output: [] });
    this.json(response, 200, object);
  }
}
