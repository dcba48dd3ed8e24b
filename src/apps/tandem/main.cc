// tandem: one binary, one verb per task. This file only lists the verbs.
#include <CLI/CLI.hpp>

#include "apps/tandem/bench_verb.h"
#include "apps/tandem/chat_verb.h"
#include "apps/tandem/doctor_verb.h"
#include "apps/tandem/eval_verb.h"
#include "apps/tandem/model_verb.h"
#include "apps/tandem/pair_verbs.h"
#include "apps/tandem/serve_verb.h"
#include "apps/tandem/setup_verb.h"
#include "apps/tandem/verify_verb.h"

int main(int argc, char** argv) {
  CLI::App app{"Tandem serves DeepSeek-V4-Flash on two machines, on one, or on a plain CPU."};
  app.require_subcommand(1);
  int exit_code = 0;
  tandem::apps::add_serve_verb(app, exit_code);
  tandem::apps::add_setup_verb(app, exit_code);
  tandem::apps::add_doctor_verb(app, exit_code);
  tandem::apps::add_pair_verbs(app, exit_code);
  tandem::apps::add_model_verb(app, exit_code);
  tandem::apps::add_chat_verb(app, exit_code);
  tandem::apps::add_verify_verb(app, exit_code);
  tandem::apps::add_bench_verb(app, exit_code);
  tandem::apps::add_eval_verb(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
