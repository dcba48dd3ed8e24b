// Every fault of scripted_server.mjs and the one gate that must name it.
const gates = {
  'catalog.models': 'models_status models_twice models_not_listed models_no_list models_no_by_id',
  'catalog.health': 'health_red health_rank_dead',
  'catalog.errors':
    'errors_broken_json_accepted errors_html errors_404_plain errors_no_messages_accepted ' +
    'errors_unknown_model_accepted errors_wrong_type_accepted errors_field_not_named',
  'responses.text':
    'responses_status responses_wrong_answer responses_no_usage responses_usage_float responses_in_progress',
  'responses.stream':
    'stream_content_type stream_sequence_from_one stream_sequence_gap stream_no_sequence stream_event_name ' +
    'stream_no_event_line stream_response_id_changes stream_comment stream_id_field stream_no_item_added ' +
    'stream_item_added_twice stream_wrong_text stream_item_id_changes stream_empty_item_id stream_unknown_event ' +
    'stream_no_item_done stream_final_ids_differ stream_final_text_differs stream_final_empty ' +
    'stream_no_final_usage stream_cut stream_incomplete stream_no_terminal stream_two_terminals ' +
    'stream_late_delta stream_done_mark',
  'responses.tool':
    'responses_tool_none responses_tool_name responses_tool_arguments responses_tool_no_call_id ' +
    'responses_tool_twice continuation_404 continuation_unknown_accepted continuation_forgets',
  'responses.schema': 'schema_wrong_value schema_string schema_extra_key schema_fenced',
  'responses.reasoning': 'reasoning_absent reasoning_in_text',
  'responses.bad_field': 'bad_field_accepted bad_field_plain',
  'responses.store':
    'store_false_kept store_get_missing store_other_output store_delete_ignored store_delete_refused',
  'chat.text': 'chat_wrong_answer chat_finish_length chat_total_wrong chat_cached_missing chat_status',
  'chat.stream':
    'chat_stream_event_line chat_stream_no_role chat_stream_wrong_text chat_stream_id_changes ' +
    'chat_stream_no_finish chat_stream_two_finishes chat_stream_late_delta chat_stream_no_usage ' +
    'chat_stream_usage_no_choices chat_stream_cut chat_stream_no_done chat_stream_after_done',
  'chat.tools':
    'tools_broken_arguments tools_wrong_argument tools_extra_argument tools_wrong_name tools_finish_stop ' +
    'tools_markup_leaks tools_stream_markup tools_stream_no_index tools_stream_no_id ' +
    'tools_stream_repeats_name tools_stream_two_calls',
  'chat.truncation': 'truncated_broken_json truncated_as_tool_calls truncated_leaks_markup',
  'chat.schema': 'chat_schema_extra_key chat_schema_fenced chat_schema_range',
  'chat.assistant_final': 'assistant_final_empty assistant_final_markup assistant_final_refused',
  'messages.text':
    'messages_count_zero messages_no_usage messages_stop_reason_null messages_wrong_type ' +
    'messages_wrong_answer messages_status',
  'messages.stream':
    'messages_stream_no_event_line messages_stream_no_start_usage messages_stream_index ' +
    'messages_stream_overlap messages_stream_wrong_text messages_stream_wrong_block ' +
    'messages_stream_open_block messages_stream_stop_reason messages_stream_no_usage ' +
    'messages_stream_no_stop messages_stream_late',
  'messages.tools':
    'messages_tool_end_turn messages_tool_input_string messages_tool_as_text messages_tool_name',
  'sampling.repeatable': 'warm_differs seed_ignored counting_empty',
  'sampling.logprobs':
    'logprobs_missing logprobs_positive logprobs_null logprobs_few_top logprobs_unsorted logprobs_other_text',
  'sampling.n': 'n_only_one n_index_zero n_mixed',
  'sampling.stop': 'stop_inside_thinking stop_ignored stop_kept_in_text stop_reported_as_length',
  'sampling.budget': 'budget_ignored budget_no_answer budget_refused',
  multiturn: 'multiturn_never_cached multiturn_cached_over_prompt multiturn_wrong_answer',
  disconnect:
    'disconnect_counted disconnect_runs_on disconnect_counter_falls disconnect_not_quiet disconnect_stuck ' +
    'disconnect_cache_counter_falls',
  recall: 'recall_forgets',
  garble: 'garble_replacement garble_loop garble_control garble_mark garble_empty',
  deep_tools:
    'deep_tools_broken_arguments deep_tools_wrong_argument deep_tools_leaks_system deep_tools_leaks_schema ' +
    'deep_tools_markup deep_tools_no_call',
  speculation: 'speculation_changes_text speculation_changes_finish speculation_loses_answer',
};

export const faults = Object.entries(gates).flatMap(([gate, names]) =>
  names.split(' ').map((name) => ({ name, gate })),
);

// Servers that lack something: the named gates are skipped with a reason that says what is missing.
export const lacks = [
  { name: 'no_speculation_field', gates: ['speculation'], reason: 'refuses the request field speculation' },
  { name: 'speculation_ignored', gates: ['speculation'], reason: 'ignores the request field speculation' },
  { name: 'no_drafts', gates: ['speculation'], reason: 'speculation is off' },
  { name: 'no_draft_metrics', gates: ['speculation'], reason: 'cannot tell drafts on from off' },
  { name: 'no_messages', gates: ['messages.text', 'messages.stream', 'messages.tools'], reason: 'no /v1/messages' },
];
