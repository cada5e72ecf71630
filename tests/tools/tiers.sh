# Copyright The Clerestory Authors.
# SPDX-License-Identifier: Apache-2.0
#
# `./dev test` and `./dev lint`. Sourced by ./dev, in the root of the tree.

# shellcheck shell=bash
# What is used here and not set here is set there:
# shellcheck disable=SC2154

# Each check and each test leaves JUnit's XML here, one folder per tier.
results=build/test-results
results_of_tier=$results/none

# Runs a check and records how it ended, as a test: NAME COMMAND...
step() {
  local name=$1 outcome=''
  shift
  say "checking: $name"
  attempt "$@"
  if ((rc != 0)); then
    say "failed: $name"
    outcome='<failure/>'
  fi
  mkdir -p "$results_of_tier"
  printf '<testsuite><testcase name="%s">%s</testcase></testsuite>\n' \
    "$name" "$outcome" >"$results_of_tier/step-${name//[^a-z0-9]/-}.xml"
}

# --- lint --------------------------------------------------------------------

# The files of the tree, committed or not, that match PATHSPEC...; by NUL.
files_of_tree() {
  local file
  git ls-files -z --cached --others --exclude-standard -- "$@" | sort -zu |
    while IFS= read -r -d '' file; do
      if [[ -f $file ]]; then printf '%s\0' "$file"; fi
    done
}

lint_format() {
  files_of_tree '*.cc' '*.h' |
    xargs -0 -r clang-format-19 --dry-run -Werror --ferror-limit=1 || {
    say "repair each with 'clang-format-19 -i FILE'"
    return 1
  }
}

# `buf` in proto/, which must have protos.
lint_buf() {
  if [[ ! $(find proto -name '*.proto' -print -quit) ]]; then
    say 'there are no protos yet'
    return
  fi
  (cd proto && "$root/$buf" "$@")
}

main_branch() {
  git rev-parse --verify -q main || git rev-parse --verify -q origin/main
}

lint_buf_breaking() {
  local base folder code=0
  if ! base=$(main_branch) ||
    ! git ls-tree -r --name-only "$base" proto | grep -q '\.proto$'; then
    say 'no earlier version of the protos to compare with'
    return
  fi
  folder=$(mktemp -d)
  git archive "$base" proto | tar -x -C "$folder"
  lint_buf breaking --against "$folder/proto" || code=$?
  rm -rf "$folder"
  return "$code"
}

lint_shell() {
  {
    files_of_tree '*.sh'
    printf '%s\0' dev .ci/run
  } | xargs -0 shellcheck -x
}

lint_python() {
  files_of_tree '*.py' | xargs -0 -r python3 -m py_compile
}

# The checks of tests/tidy, and of what the tests themselves run on.
lint_tree() {
  python3 tests/tools/run_unittest.py --junit "$results_of_tier/tree.xml" \
    tests/tidy tests/tools
}

# What takes seconds: also the tier tidy.
lint_fast() {
  need build check buf
  rm -rf "$results_of_tier"
  mkdir -p "$results_of_tier"
  attempt lint_tree
  local tree_code=$rc
  step 'clang-format' lint_format
  step 'buf lint' lint_buf lint
  step 'buf format' lint_buf format --diff --exit-code
  step 'shellcheck' lint_shell
  step 'python compiles' lint_python
  # With a failing test it is the XML that says so.
  [[ -f $results_of_tier/tree.xml ]] || return "$tree_code"
}

# clang-tidy on the sources that match PATTERN...: OPTION PATTERN...
run_clang_tidy() {
  (($# > 1)) || return 0
  # It counts the warnings that it hides in the headers of others.
  run-clang-tidy-19 -quiet -p build/check -j "$(job_count)" "$@" 2>&1 |
    sed '/warnings\? generated/d'
}

# clang-tidy on what differs from the main branch, or with --all on everything.
lint_clang_tidy() {
  local base source sources=() code=() tests=() generated=()
  local tests_checks outcome=0
  configure check
  # Headers that protoc makes must be there; the rest need not be built.
  mapfile -t generated < <(ninja -C build/check -t targets all |
    sed -n 's/^\(.*\.pb\.h\): CUSTOM_COMMAND.*/\1/p')
  if ((${#generated[@]})); then
    ninja -C build/check "${generated[@]}"
  fi
  if [[ ${1:-} == --all ]]; then
    files_of_tree '*.cc' '*.h' >build/check/changed
  else
    base=$(main_branch || git rev-parse HEAD)
    base=$(git merge-base HEAD "$base")
    {
      git diff --name-only -z --diff-filter=d "$base" -- '*.cc' '*.h'
      git ls-files -z --others --exclude-standard -- '*.cc' '*.h'
    } >build/check/changed
  fi
  mapfile -t sources < <(python3 tests/tools/tidy_sources.py \
    build/check/compile_commands.json <build/check/changed)
  if ((${#sources[@]} == 0)); then
    say 'no C++ differs from the main branch'
    return
  fi
  for source in "${sources[@]}"; do
    if [[ $source == *_test.cc ]]; then
      tests+=("$source\$")
    else
      code+=("$source\$")
    fi
  done
  say "clang-tidy reads ${#sources[@]} of the sources, some seconds each"
  run_clang_tidy '-checks=' "${code[@]}" || outcome=1
  tests_checks=$(sed -n '/^Checks:/,$ s/^  //p' tests/.clang-tidy | tr -d ' \n')
  run_clang_tidy "-checks=$tests_checks" "${tests[@]}" || outcome=1
  return "$outcome"
}

lint() {
  if (($# > 1)) || [[ $# == 1 && $1 != --all ]]; then
    die 'lint takes nothing but --all.'
  fi
  results_of_tier=$results/lint
  attempt lint_fast
  local fast_code=$rc
  step 'buf breaking' lint_buf_breaking
  step 'clang-tidy' lint_clang_tidy "$@"
  count_tier lint
  cat "$results/lint/failures"
  if [[ -s $results/lint/failures ]] || ((fast_code != 0)); then
    die 'lint found something: see above.'
  fi
  say 'lint found nothing'
}

# --- test --------------------------------------------------------------------

tier_tidy() { lint_fast; }

# Builds PRESET and runs its tests: PRESET [OPTION...]
run_ctest() {
  local preset=$1
  shift
  build "$preset"
  say "running the tests of build/$preset"
  ctest --preset "$preset" -j2 "$@" \
    --output-junit "$root/$results_of_tier/ctest.xml"
}

tier_unit() { run_ctest dev; }
tier_asan() { run_ctest asan; }
# Without what runs RocksDB: Debian's library is not instrumented, so that
# ThreadSanitizer reports races that are none, whatever is suppressed.
tier_tsan() { run_ctest tsan --exclude-regex '[./]Rocks'; }

# Each fuzzer, on the inputs that are kept for it.
tier_fuzz() {
  local fuzzer name corpus
  if [[ ! -f tests/fuzz/CMakeLists.txt ]]; then
    say 'there are no fuzzers yet'
    return
  fi
  build fuzz
  for fuzzer in build/fuzz/bin/*_fuzz; do
    name=${fuzzer##*/}
    corpus=tests/testdata/fuzz/${name%_fuzz}
    [[ -d $corpus ]] || die "$name has no inputs in $corpus."
    step "$name" "$fuzzer" -runs=0 "$corpus"
  done
}

# The real programs, driven from Python.
tier_e2e() {
  build release
  build_random_views
  need python
  export_paths
  "$python" -m pytest -v -o cache_dir="$root/.cache/pytest" \
    --junit-xml="$root/$results_of_tier/pytest.xml" tests/e2e
}

# Leaves the counts of TIER in its file `counts`, the names of what failed in
# `failures`.
count_tier() {
  python3 tests/tools/count_junit.py "$results/$1"/*.xml \
    >"$results/$1/counts" 2>"$results/$1/failures"
}

run_tier() {
  local tier=$1
  results_of_tier=$results/$tier
  rm -rf "$results_of_tier"
  mkdir -p "$results_of_tier"
  "tier_$tier"
}

run_tiers() {
  local tiers=("$@") tier started code passed failed skipped
  ((${#tiers[@]})) || tiers=("${all_tiers[@]}")
  for tier in "${tiers[@]}"; do
    [[ " ${all_tiers[*]} " == *" $tier "* ]] ||
      die "no tier is called '$tier': ${all_tiers[*]}."
  done
  trap 'exit 130' INT

  # The counting needs Python, whatever the tiers need.
  need build
  local passed_total=0 failed_total=0 lines=()
  for tier in "${tiers[@]}"; do
    say "tier $tier"
    started=$SECONDS
    attempt run_tier "$tier"
    code=$rc
    count_tier "$tier"
    read -r passed failed skipped <"$results/$tier/counts"
    if ((code != 0 && failed == 0)); then
      # It did not come as far as its tests, or not out of them.
      say "tier $tier ended with exit code $code and no failed test"
      failed=1
    elif ((passed + failed == 0)) && [[ $tier != fuzz ]]; then
      say "tier $tier ran no test"
      failed=1
    fi
    ((passed_total += passed, failed_total += failed)) || true
    lines+=("$(printf '%-6s %5d passed %5d failed %5d skipped %6d s' "$tier" \
      "$passed" "$failed" "$skipped" $((SECONDS - started)))")
  done

  echo
  for tier in "${tiers[@]}"; do
    if [[ -s $results/$tier/failures ]]; then
      sed "s/^/failed in $tier: /" "$results/$tier/failures"
    fi
  done
  printf '%s\n' "${lines[@]}"
  echo "$passed_total passed, $failed_total failed"
  ((failed_total == 0 && passed_total > 0))
}
