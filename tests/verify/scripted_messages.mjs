// POST /v1/messages of the scripted server, with its faults.
import { newId } from './scripted_ids.mjs';
import { think } from './scripted_model.mjs';

export function messages(server, body, response) {
  const tools = (body.tools ?? []).map((t) => ({ name: t.name }));
  const { text, call } = think(body.messages, tools, null, false);
  ++server.success;
  if (body.stream) return messagesStream(server, text, response);
  const content = call
    ? [{ type: 'tool_use', id: newId('toolu'), name: call.name, input: JSON.parse(call.arguments) }]
    : [{ type: 'text', text }];
  const object = {
    id: newId('msg'), type: 'message', role: 'assistant', model: 'scripted', content,
    stop_reason: call ? 'tool_use' : 'end_turn', stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 2 },
  };
  if (call) {
    if (server.is('messages_tool_end_turn')) object.stop_reason = 'end_turn';
    if (server.is('messages_tool_input_string')) content[0].input = call.arguments;
    if (server.is('messages_tool_as_text')) object.content = [{ type: 'text', text: call.arguments }];
    if (server.is('messages_tool_name')) content[0].name = 'weather';
  } else {
    if (server.is('messages_no_usage')) delete object.usage;
    if (server.is('messages_stop_reason_null')) object.stop_reason = null;
    if (server.is('messages_wrong_type')) object.type = 'completion';
    if (server.is('messages_wrong_answer')) content[0].text = 'ready';
    if (server.is('messages_status')) return server.json(response, 500, object);
  }
  server.json(response, 200, object);
}

function messagesStream(server, text, response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (type, fields = {}) => {
    const line = server.is('messages_stream_no_event_line') ? '' : `event: ${type}\n`;
    response.write(`${line}data: ${JSON.stringify({ type, ...fields })}\n\n`);
  };
  const usage = { input_tokens: 5, output_tokens: 1 };
  send('message_start', {
    message: { id: newId('msg'), type: 'message', role: 'assistant', content: [], ...(server.is('messages_stream_no_start_usage') ? {} : { usage }) },
  });
  send('ping');
  const index = server.is('messages_stream_index') ? 1 : 0;
  send('content_block_start', { index, content_block: { type: 'text', text: '' } });
  if (server.is('messages_stream_overlap')) send('content_block_start', { index: 1, content_block: { type: 'text', text: '' } });
  const where = server.is('messages_stream_overlap') ? 1 : index;
  const shown = server.is('messages_stream_wrong_text') ? 'REDY' : text;
  for (const piece of shown.match(/.{1,2}/g)) {
    const target = server.is('messages_stream_wrong_block') ? where + 4 : where;
    send('content_block_delta', { index: target, delta: { type: 'text_delta', text: piece } });
  }
  if (!server.is('messages_stream_open_block')) send('content_block_stop', { index: where });
  send('message_delta', {
    delta: { stop_reason: server.is('messages_stream_stop_reason') ? 'max_tokens' : 'end_turn', stop_sequence: null },
    ...(server.is('messages_stream_no_usage') ? {} : { usage: { output_tokens: 2 } }),
  });
  if (!server.is('messages_stream_no_stop')) send('message_stop');
  if (server.is('messages_stream_late')) send('content_block_delta', { index: where, delta: { type: 'text_delta', text: '' } });
  response.end();
}
