#include "tests/mutants/cases.h"

#include <fmt/format.h>

namespace apl::mutants {

std::vector<Case> cases() {
  const std::string product =
      "tabulate m (\\i -> tabulate n (\\j -> f32.sum (tabulate q (\\k -> A[i, k] * B[k, j]))))\n";
  const auto matrices = [&](const std::string& entry) {
    return "entry " + entry + " [m][n][q] (A: [m][q]f32) (B: [q][n]f32) : [m][n]f32 =\n  " + product;
  };
  std::vector<Case> all;
  // Little but the remainder of the reduction.
  all.push_back({"short",
                 matrices("short"),
                 {{"T_m", 4}, {"R_m", 2}, {"T_n", 8}, {"R_n", 4}, {"T_q", 8}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"m", 25}, {"n", 36}, {"q", 5}},
                  {{"m", 17}, {"n", 35}, {"q", 7}},
                  {{"m", 1}, {"n", 33}, {"q", 1}},
                  {{"m", 9}, {"n", 35}, {"q", 8}},
                  {{"m", 9}, {"n", 35}, {"q", 9}},
                  {{"m", 25}, {"n", 36}, {"q", 27}},
                  {{"m", 17}, {"n", 35}, {"q", 9}},
                  {{"m", 25}, {"n", 4}, {"q", 0}}}});
  all.push_back({"long",
                 matrices("long"),
                 {{"T_m", 8}, {"R_m", 4}, {"T_n", 8}, {"R_n", 4}, {"T_q", 4}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"m", 100}, {"n", 36}, {"q", 38}},
                  {{"m", 7}, {"n", 35}, {"q", 41}},
                  {{"m", 31}, {"n", 4}, {"q", 4}},
                  {{"m", 33}, {"n", 35}, {"q", 3}},
                  {{"m", 33}, {"n", 36}, {"q", 3}},
                  {{"m", 7}, {"n", 35}, {"q", 3}},
                  {{"m", 33}, {"n", 5}, {"q", 0}}}});
  // Copies run three steps ahead, and into the next tile.
  all.push_back({"staged",
                 matrices("staged"),
                 {{"T_m", 4}, {"R_m", 2}, {"T_n", 8}, {"R_n", 4}, {"T_q", 4}, {"stages", 4}, {"tiles_per_block", 3}},
                 {{{"m", 39}, {"n", 36}, {"q", 17}},
                  {{"m", 25}, {"n", 31}, {"q", 16}},
                  {{"m", 24}, {"n", 9}, {"q", 3}},
                  {{"m", 33}, {"n", 8}, {"q", 9}},
                  {{"m", 5}, {"n", 9}, {"q", 11}},
                  {{"m", 25}, {"n", 31}, {"q", 18}}}});
  all.push_back({"unstaged",
                 matrices("unstaged"),
                 {{"T_m", 4}, {"R_m", 2}, {"T_n", 8}, {"R_n", 4}, {"T_q", 4}, {"stages", 1}},
                 {{{"m", 17}, {"n", 36}, {"q", 11}},
                  {{"m", 17}, {"n", 31}, {"q", 8}},
                  {{"m", 1}, {"n", 5}, {"q", 3}},
                  {{"m", 3}, {"n", 4}, {"q", 0}}}});
  // No remainder: the last step is filled up.
  all.push_back({"filled",
                 matrices("filled"),
                 {{"T_m", 4},
                  {"R_m", 2},
                  {"T_n", 8},
                  {"R_n", 4},
                  {"T_q", 4},
                  {"stages", 3},
                  {"tiles_per_block", 2},
                  {"remainder", 2}},
                 {{{"m", 25}, {"n", 36}, {"q", 18}},
                  {{"m", 17}, {"n", 35}, {"q", 13}},
                  {{"m", 9}, {"n", 35}, {"q", 3}},
                  {{"m", 9}, {"n", 36}, {"q", 2}},
                  {{"m", 25}, {"n", 5}, {"q", 8}},
                  {{"m", 25}, {"n", 4}, {"q", 0}}}});
  // Code behind the reduction, which reads another array.
  all.push_back({"after",
                 "entry after [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (C: [n][m]f32) : [m][n]f32 =\n"
                 "  tabulate m (\\i -> tabulate n (\\j -> "
                 "2 * f32.sum (tabulate q (\\k -> A[i, k] * B[k, j])) + C[j, i]))\n",
                 {{"T_m", 4}, {"R_m", 2}, {"T_n", 8}, {"R_n", 4}, {"T_q", 4}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"m", 25}, {"n", 36}, {"q", 18}},
                  {{"m", 17}, {"n", 35}, {"q", 9}},
                  {{"m", 5}, {"n", 7}, {"q", 3}},
                  {{"m", 9}, {"n", 36}, {"q", 3}},
                  {{"m", 5}, {"n", 36}, {"q", 4}},
                  {{"m", 9}, {"n", 35}, {"q", 4}},
                  {{"m", 25}, {"n", 4}, {"q", 0}}}});
  // Code behind the reduction, which reads along the rows alone and along the columns alone.
  all.push_back({"biased",
                 "entry biased [m][n][q] (A: [m][q]f32) (B: [q][n]f32) (r: [m]f32) (c: [n]f32) : [m][n]f32 =\n"
                 "  tabulate m (\\i -> tabulate n (\\j -> "
                 "r[i] * f32.sum (tabulate q (\\k -> A[i, k] * B[k, j])) + c[j]))\n",
                 {{"T_m", 4}, {"R_m", 2}, {"T_n", 8}, {"R_n", 4}, {"T_q", 4}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"m", 25}, {"n", 36}, {"q", 18}},
                  {{"m", 17}, {"n", 35}, {"q", 9}},
                  {{"m", 5}, {"n", 7}, {"q", 3}},
                  {{"m", 9}, {"n", 36}, {"q", 3}},
                  {{"m", 5}, {"n", 36}, {"q", 4}},
                  {{"m", 9}, {"n", 35}, {"q", 4}},
                  {{"m", 25}, {"n", 4}, {"q", 0}}}});
  // M and N of two dims each, and a batch.
  all.push_back({"flat",
                 "entry flat [a][b][c][d][e][q] (A: [e][c][q][a]f32) (B: [e][b][q][d]f32) : [e][a][b][c][d]f32 =\n"
                 "  tabulate e (\\h -> tabulate a (\\i -> tabulate_3d b c d (\\j k l -> "
                 "f32.sum (tabulate q (\\x -> A[h, k, x, i] * B[h, j, x, l])))))\n",
                 {{"T_a", 2},
                  {"R_a", 2},
                  {"T_c", 2},
                  {"R_c", 2},
                  {"T_b", 2},
                  {"R_b", 1},
                  {"T_d", 4},
                  {"R_d", 4},
                  {"T_q", 4},
                  {"stages", 2},
                  {"tiles_per_block", 2}},
                 {{{"a", 3}, {"b", 3}, {"c", 7}, {"d", 12}, {"e", 2}, {"q", 9}},
                  {{"a", 4}, {"b", 5}, {"c", 5}, {"d", 7}, {"e", 1}, {"q", 4}},
                  {{"a", 3}, {"b", 3}, {"c", 3}, {"d", 3}, {"e", 1}, {"q", 4}},
                  {{"a", 7}, {"b", 3}, {"c", 7}, {"d", 7}, {"e", 1}, {"q", 3}},
                  {{"a", 5}, {"b", 3}, {"c", 7}, {"d", 12}, {"e", 1}, {"q", 14}},
                  {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 4}, {"e", 1}, {"q", 6}},
                  {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 3}, {"e", 1}, {"q", 3}},
                  {{"a", 1}, {"b", 3}, {"c", 1}, {"d", 4}, {"e", 1}, {"q", 3}},
                  {{"a", 4}, {"b", 3}, {"c", 5}, {"d", 8}, {"e", 2}, {"q", 13}},
                  {{"a", 4}, {"b", 3}, {"c", 9}, {"d", 8}, {"e", 1}, {"q", 4}},
                  {{"a", 4}, {"b", 3}, {"c", 9}, {"d", 8}, {"e", 1}, {"q", 3}},
                  {{"a", 7}, {"b", 3}, {"c", 7}, {"d", 8}, {"e", 1}, {"q", 0}},
                  {{"a", 7}, {"b", 3}, {"c", 7}, {"d", 8}, {"e", 1}, {"q", 3}}}});
  // Products of matrix units, from tiles by depth and by rows.
  all.push_back({"units",
                 "entry units [n][m][b] (A: [n][m]f16) (B: [m][b]f16) : [n][b]f32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> "
                 "f32.sum (tabulate m (\\k -> f32.f16 A[i, k] * f32.f16 B[k, j]))))\n",
                 {{"T_n", 8}, {"R_n", 8}, {"T_b", 16}, {"R_b", 4}, {"T_m", 16}, {"stages", 3}, {"tiles_per_block", 2}},
                 {{{"n", 140}, {"m", 70}, {"b", 67}},
                  {{"n", 140}, {"m", 72}, {"b", 72}},
                  {{"n", 140}, {"m", 72}, {"b", 67}},
                  {{"n", 140}, {"m", 70}, {"b", 72}},
                  {{"n", 64}, {"m", 48}, {"b", 64}},
                  {{"n", 9}, {"m", 40}, {"b", 8}},
                  {{"n", 200}, {"m", 8}, {"b", 8}},
                  {{"n", 64}, {"m", 48}, {"b", 67}},
                  {{"n", 200}, {"m", 19}, {"b", 5}},
                  {{"n", 200}, {"m", 8}, {"b", 5}},
                  {{"n", 5}, {"m", 3}, {"b", 5}},
                  {{"n", 200}, {"m", 0}, {"b", 3}}}});
  // Both by rows, and neither as a whole at addresses that vectors need.
  all.push_back({"unit_rows",
                 "entry unit_rows [n][m][b] (A: [m][n]f16) (B: [m][b]f16) : [n][b]f32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> "
                 "f32.sum (tabulate m (\\k -> f32.f16 A[k, i] * f32.f16 B[k, j]))))\n",
                 {{"T_n", 8}, {"R_n", 8}, {"T_b", 16}, {"R_b", 4}, {"T_m", 16}, {"stages", 3}, {"tiles_per_block", 2}},
                 {{{"n", 141}, {"m", 70}, {"b", 67}},
                  {{"n", 144}, {"m", 70}, {"b", 72}},
                  {{"n", 141}, {"m", 70}, {"b", 72}},
                  {{"n", 144}, {"m", 70}, {"b", 67}},
                  {{"n", 64}, {"m", 48}, {"b", 64}},
                  {{"n", 200}, {"m", 8}, {"b", 8}},
                  {{"n", 64}, {"m", 48}, {"b", 67}},
                  {{"n", 199}, {"m", 19}, {"b", 5}},
                  {{"n", 200}, {"m", 8}, {"b", 5}},
                  {{"n", 5}, {"m", 3}, {"b", 5}},
                  {{"n", 200}, {"m", 0}, {"b", 3}}}});
  // Results through the last step's tiles: of a warp's rows, and, where rows of N are shared out, of the block's.
  all.push_back({"unit_lines",
                 "entry unit_lines [n][m][b] (A: [n][m]f16) (B: [b][m]f16) : [n][b]f32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> "
                 "f32.sum (tabulate m (\\k -> f32.f16 A[i, k] * f32.f16 B[j, k]))))\n",
                 {{"T_n", 8}, {"R_n", 8}, {"T_b", 16}, {"R_b", 4}, {"T_m", 64}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"n", 140}, {"m", 70}, {"b", 67}},
                  {{"n", 140}, {"m", 72}, {"b", 72}},
                  {{"n", 140}, {"m", 72}, {"b", 67}},
                  {{"n", 140}, {"m", 70}, {"b", 72}},
                  {{"n", 64}, {"m", 136}, {"b", 64}},
                  {{"n", 200}, {"m", 8}, {"b", 8}},
                  {{"n", 64}, {"m", 48}, {"b", 67}},
                  {{"n", 200}, {"m", 19}, {"b", 5}},
                  {{"n", 300}, {"m", 64}, {"b", 67}},
                  {{"n", 5}, {"m", 3}, {"b", 5}},
                  {{"n", 200}, {"m", 0}, {"b", 3}}}});
  all.push_back({"unit_columns",
                 "entry unit_columns [n][m][b] (A: [n][m]f16) (B: [b][m]f16) : [n][b]f32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> "
                 "f32.sum (tabulate m (\\k -> f32.f16 A[i, k] * f32.f16 B[j, k]))))\n",
                 {{"T_n", 8}, {"R_n", 16}, {"T_b", 16}, {"R_b", 4}, {"T_m", 32}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"n", 140}, {"m", 70}, {"b", 67}},
                  {{"n", 140}, {"m", 72}, {"b", 72}},
                  {{"n", 280}, {"m", 72}, {"b", 67}},
                  {{"n", 280}, {"m", 70}, {"b", 72}},
                  {{"n", 128}, {"m", 72}, {"b", 64}},
                  {{"n", 200}, {"m", 8}, {"b", 8}},
                  {{"n", 300}, {"m", 31}, {"b", 67}},
                  {{"n", 200}, {"m", 19}, {"b", 5}},
                  {{"n", 5}, {"m", 3}, {"b", 5}},
                  {{"n", 200}, {"m", 0}, {"b", 3}}}});
  // Two dims of the depth, of which a step has two of the outer one.
  all.push_back({"unit_nest",
                 "entry unit_nest [n][m][p][b] (A: [n][p][m]f16) (B: [m][p][b]f16) : [n][b]f32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> f32.sum (flatten (tabulate_2d p m (\\h k -> "
                 "f32.f16 A[i, h, k] * f32.f16 B[k, h, j])))))\n",
                 {{"T_n", 8},
                  {"R_n", 8},
                  {"T_b", 16},
                  {"R_b", 4},
                  {"T_p", 2},
                  {"T_m", 16},
                  {"stages", 4},
                  {"tiles_per_block", 2}},
                 {{{"n", 140}, {"m", 35}, {"p", 3}, {"b", 67}},
                  {{"n", 140}, {"m", 40}, {"p", 3}, {"b", 72}},
                  {{"n", 140}, {"m", 40}, {"p", 3}, {"b", 67}},
                  {{"n", 140}, {"m", 35}, {"p", 3}, {"b", 72}},
                  {{"n", 140}, {"m", 40}, {"p", 3}, {"b", 64}},
                  {{"n", 64}, {"m", 48}, {"p", 2}, {"b", 64}},
                  {{"n", 200}, {"m", 16}, {"p", 4}, {"b", 8}},
                  {{"n", 200}, {"m", 19}, {"p", 2}, {"b", 5}},
                  {{"n", 200}, {"m", 8}, {"p", 1}, {"b", 8}},
                  {{"n", 5}, {"m", 3}, {"p", 5}, {"b", 5}},
                  {{"n", 200}, {"m", 3}, {"p", 0}, {"b", 3}}}});
  // The same of bytes, of which one operand is turned while it is copied; and products of f32 by tf32.
  all.push_back({"unit_bytes",
                 "entry unit_bytes [n][m][b] (A: [n][m]i8) (B: [m][b]u8) : [n][b]i32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> "
                 "i32.sum (tabulate m (\\k -> i32.i8 A[i, k] * i32.u8 B[k, j]))))\n",
                 {{"T_n", 8}, {"R_n", 8}, {"T_b", 16}, {"R_b", 4}, {"T_m", 32}, {"stages", 3}, {"tiles_per_block", 2}},
                 {{{"n", 140}, {"m", 70}, {"b", 67}},
                  {{"n", 64}, {"m", 96}, {"b", 64}},
                  {{"n", 200}, {"m", 16}, {"b", 8}},
                  {{"n", 5}, {"m", 3}, {"b", 5}},
                  {{"n", 200}, {"m", 0}, {"b", 3}}}});
  all.push_back({"unit_floats",
                 "#[f32_3xtf32]\nentry unit_floats [n][m][b] (A: [n][m]f32) (B: [m][b]f32) : [n][b]f32 =\n"
                 "  tabulate n (\\i -> tabulate b (\\j -> f32.sum (tabulate m (\\k -> A[i, k] * B[k, j]))))\n",
                 {{"T_n", 4}, {"R_n", 8}, {"T_b", 8}, {"R_b", 4}, {"T_m", 16}, {"stages", 3}, {"tiles_per_block", 2}},
                 {{{"n", 70}, {"m", 70}, {"b", 67}},
                  {{"n", 64}, {"m", 48}, {"b", 64}},
                  {{"n", 100}, {"m", 32}, {"b", 64}},
                  {{"n", 64}, {"m", 27}, {"b", 32}},
                  {{"n", 100}, {"m", 12}, {"b", 8}},
                  {{"n", 70}, {"m", 70}, {"b", 68}},
                  {{"n", 5}, {"m", 3}, {"b", 5}},
                  {{"n", 200}, {"m", 0}, {"b", 3}}}});
  // Two dims of the reduction, neither a multiple of its tiles: copies run ahead from one turn of the outer one into
  // the next, and into the next tile.
  all.push_back(
      {"deep",
       "entry deep [m][n][p][q] (A: [p][m][q]f64) (B: [p][q][n]f64) : [m][n]f64 =\n"
       "  tabulate m (\\i -> tabulate n (\\j -> f64.sum (flatten (tabulate_2d p q (\\h k -> A[h, i, k] * "
       "B[h, k, j])))))\n",
       {{"T_m", 4}, {"R_m", 4}, {"T_n", 8}, {"R_n", 2}, {"T_p", 2}, {"T_q", 3}, {"stages", 3}, {"tiles_per_block", 2}},
       {{{"m", 53}, {"n", 18}, {"p", 3}, {"q", 7}},
        {{"m", 37}, {"n", 15}, {"p", 5}, {"q", 4}},
        {{"m", 33}, {"n", 18}, {"p", 4}, {"q", 6}},
        {{"m", 53}, {"n", 15}, {"p", 3}, {"q", 2}},
        {{"m", 33}, {"n", 15}, {"p", 2}, {"q", 3}},
        {{"m", 33}, {"n", 18}, {"p", 1}, {"q", 5}},
        {{"m", 33}, {"n", 15}, {"p", 1}, {"q", 5}},
        {{"m", 33}, {"n", 18}, {"p", 3}, {"q", 2}},
        {{"m", 33}, {"n", 4}, {"p", 0}, {"q", 4}}}});
  // Elements too small for asynchronous copies, and rows of one register.
  all.push_back({"bytes",
                 "entry bytes [m][n][q] (A: [q][m]i8) (B: [n][q]i8) : [m][n]i8 =\n"
                 "  tabulate m (\\i -> tabulate n (\\j -> i8.sum (tabulate q (\\k -> A[k, i] * B[j, k]))))\n",
                 {{"T_m", 8}, {"R_m", 1}, {"T_n", 8}, {"R_n", 1}, {"T_q", 4}, {"stages", 2}, {"tiles_per_block", 2}},
                 {{{"m", 13}, {"n", 17}, {"q", 10}},
                  {{"m", 32}, {"n", 16}, {"q", 9}},
                  {{"m", 5}, {"n", 3}, {"q", 4}},
                  {{"m", 5}, {"n", 3}, {"q", 3}},
                  {{"m", 21}, {"n", 3}, {"q", 0}},
                  {{"m", 21}, {"n", 3}, {"q", 4}}}});
  // Not the mainloop: three operands, tiles in the order of memory.
  all.push_back({"plain",
                 "entry plain [m][n][p][q] (A: [m][q]i32) (B: [q][n]i32) (C: [p][q]i32) : [m][n][p]i32 =\n"
                 "  tabulate_3d m n p (\\i j l -> i32.sum (tabulate q (\\k -> A[i, k] * B[k, j] * C[l, k])))\n",
                 {{"T_m", 2}, {"R_m", 2}, {"T_n", 3}, {"R_n", 1}, {"T_p", 4}, {"R_p", 2}, {"T_q", 3}},
                 {{{"m", 5}, {"n", 4}, {"p", 9}, {"q", 7}}, {{"m", 3}, {"n", 7}, {"p", 7}, {"q", 3}}},
                 false});
  // A team that holds rows: operators in any order and in order, a scan, rows that it returns.
  all.push_back({"held",
                 "entry held [m][n] (A: [m][n]i32) : [m][n]i32 =\n"
                 "  map (\\xs -> let most = i32.maximum xs\n"
                 "              let (p, q) = reduce (\\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) "
                 "(zip (map (| 1) xs) (map (+ most) xs))\n"
                 "              let ys = scan (+) 0 (map (+ q) xs)\n"
                 "              in map2 (\\x y -> x * most + y - p) xs ys) A\n",
                 {},
                 {{{"m", 3}, {"n", 600}},
                  {{"m", 2}, {"n", 2100}},
                  {{"m", 5}, {"n", 41}},
                  {{"m", 70}, {"n", 3}},
                  {{"m", 1}, {"n", 1}}},
                 false,
                 "held_xs"});
  // Rows whose order nothing asks for: neighbours at once, where they are multiples of four.
  all.push_back({"near",
                 "entry near [m][n] (A: [m][n]i32) : ([m][n]i32, [m]i32) =\n"
                 "  unzip (map (\\xs -> let most = i32.maximum xs\n"
                 "                     let ys = map (most -) xs\n"
                 "                     let total = i32.sum ys\n"
                 "                     in (map2 (\\x y -> x * total + y) xs ys, total)) A)\n",
                 {},
                 {{{"m", 3}, {"n", 600}},
                  {{"m", 2}, {"n", 2101}},
                  {{"m", 5}, {"n", 44}},
                  {{"m", 70}, {"n", 3}},
                  {{"m", 1}, {"n", 4}}},
                 false,
                 "near_xs"});
  // Several blocks that share a reduction, in order and in any order, and a scan.
  const std::string after = "(\\(a, b) (c, d) -> (a * c, b * c + d)) (1, 0) (zip (map (| 1) as) bs)";
  const std::vector<testing::Sizes> elements{{{"n", 700}}, {{"n", 1283}}, {{"n", 3}}, {{"n", 0}}};
  all.push_back({"folded",
                 "entry folded [n] (as: [n]i32) (bs: [n]i32) : (i32, i32) = reduce " + after + "\n",
                 {{"blocks", 5}},
                 elements,
                 false,
                 "folded_r_x"});
  all.push_back(
      {"added", "entry added [n] (as: [n]i32) : i32 = i32.sum as\n", {{"blocks", 5}}, elements, false, "added_r_x"});
  all.push_back({"swept",
                 "entry swept [n] (as: [n]i32) (bs: [n]i32) : ([n]i32, [n]i32) = unzip (scan " + after + ")\n",
                 {{"blocks", 40}},
                 elements,
                 false,
                 "swept_scanned"});
  // Tiles of several rounds.
  all.push_back({"tiled",
                 "entry tiled [n] (as: [n]i32) (bs: [n]i32) : ([n]i32, [n]i32) = unzip (scan " + after + ")\n",
                 {{"blocks", 1}},
                 {{{"n", 700}}, {{"n", 7001}}, {{"n", 8192}}},
                 false,
                 "tiled_scanned"});
  // Neighbours of rows that a team scans, of a filter's blocks, of a map.
  all.push_back({"along",
                 "entry along [m][n] (A: [m][n]i32) (B: [m][n]i32) : ([m][n]i32, [m][n]i32) =\n"
                 "  unzip (map2 (\\as bs -> unzip (scan " +
                     after + ")) A B)\n",
                 {},
                 {{{"m", 3}, {"n", 600}}, {{"m", 2}, {"n", 1027}}, {{"m", 70}, {"n", 3}}, {{"m", 1}, {"n", 1}}},
                 false,
                 "along_scanned"});
  all.push_back({"filtered",
                 "entry filtered [n] (as: [n]i32) : []i32 = filter (> 0) as\n",
                 {{"blocks", 5}},
                 elements,
                 false,
                 "filtered_scanned"});
  // Two counts in a register.
  all.push_back({"parted",
                 "entry parted [n] (as: [n]i32) : [n]i32 =\n"
                 "  let flags = map (\\a -> (i32.bool (a < 0), i32.bool (a >= 0))) as\n"
                 "  let places = scan (\\(a, b) (c, d) -> (a + c, b + d)) (0, 0) flags\n"
                 "  let below = reduce (+) 0 (map (.0) flags)\n"
                 "  let is = map2 (\\a (l, r) -> i64.i32 (if a < 0 then l - 1 else below + r - 1)) as places\n"
                 "  in scatter (#[scratch] copy as) is as\n",
                 {{"blocks", 5}},
                 elements,
                 false,
                 "parted_xs"});
  all.push_back({"mapped",
                 "entry mapped [m][n] (A: [m][n]i32) : [m][n]i32 = map (map (\\x -> 3 * x + 1)) A\n",
                 {},
                 {{{"m", 5}, {"n", 64}}, {{"m", 3}, {"n", 700}}, {{"m", 7}, {"n", 33}}, {{"m", 1}, {"n", 1}}},
                 false,
                 "mapped_xs"});
  // Threads that fold four neighbouring columns of bytes, and teams that read eight neighbours of theirs.
  all.push_back({"columns",
                 "entry columns [m][n] (A: [m][n]i8) (B: [m]i8) : [n]i32 =\n"
                 "  tabulate n (\\j -> i32.sum (tabulate m (\\i -> i32.i8 A[i, j] * i32.i8 B[i])))\n",
                 {},
                 {{{"m", 5}, {"n", 64}}, {{"m", 3}, {"n", 1100}}, {{"m", 7}, {"n", 33}}, {{"m", 1}, {"n", 1}}},
                 false,
                 "columns_r_x"});
  all.push_back({"looked_up",
                 "entry looked_up [n] (as: [n]i8) : i32 = i32.sum (tabulate n (\\i -> 3 * i32.i8 as[i]))\n",
                 {{"blocks", 5}},
                 elements,
                 false,
                 "looked_up_r_x"});
  // Threads that take four windows below each other, and what is left below those.
  all.push_back({"windowed",
                 "entry windowed [m][n] (A: [m][n]i32) (B: [3][2]i32) : [][]i32 =\n"
                 "  tabulate_2d (i64.max 0 (m - 2)) (i64.max 0 (n - 1)) (\\i j ->\n"
                 "    i32.sum (flatten (tabulate_2d 3 2 (\\a b -> #[unsafe] A[i + a, j + b] * B[a, b]))))\n",
                 {},
                 {{{"m", 12}, {"n", 7}}, {{"m", 10}, {"n", 300}}, {{"m", 4}, {"n", 41}}, {{"m", 3}, {"n", 2}}},
                 false,
                 "windowed_xs"});
  all.push_back(
      {"stacked",
       "entry stacked [m][n][k] (A: [m][n]i32) (B: [k]i32) : [][]i32 =\n"
       "  tabulate_2d (i64.max 0 (m - k)) n (\\i j -> i32.sum (tabulate k (\\a -> #[unsafe] A[i + a, j] * B[a])))\n",
       {},
       {{{"m", 13}, {"n", 7}, {"k", 3}}, {{"m", 9}, {"n", 130}, {"k", 3}}, {{"m", 4}, {"n", 41}, {"k", 2}}},
       false,
       "stacked_r_x"});
  return all;
}

const std::vector<Equivalent>& equivalents() {
  static const std::vector<Equivalent> kAll = [] {
    std::vector<Equivalent> all{
        {"", "guard `has_remainder`", "a rest of no depth is one step more, which copies and adds nothing"},
        {"short long staged flat bytes after biased unit_floats", "guard `ahead < steps`",
         "a step beyond the last copies what is left of the depth, or nothing; nobody reads it"},
        {"filled", "guard `ahead < tiles` 1", "a step beyond the last is filled up, and nobody reads it"},
        {"short long staged unstaged filled after biased flat deep bytes unit_floats", "guard `next < last` 1",
         "rows beyond the last tile are as rows outside of it, and no tile of the loop uses them"},
        {"unit_floats", "guard `tile_m == 0` 1", "later steps fill the next tile's tables with what is there"},
        {"", "guard `rows_outside` 1", "copies write over zeros"},
        {"", "guard `columns_outside` 1", "copies write over zeros"},
        {"", "guard `tile_q == 0` 1", "later steps fill the next tile's tables with what is there, between barriers"},
        {"", "guard `apl_aligned<16>(xs)` 1", "what a backend allocates is aligned; only a caller's memory may not be"},
        {"deep", "guard `ahead < steps`",
         "behind the last step comes the first one again, into a stage that nobody reads"},
        {"unit_nest", "guard `over` 1", "it is asked for where it is 0 alone, and that is behind the last step alone"},
        {"unit_nest", "guard `over` 4", "it is asked for where it is 0 alone, and that is behind the last step alone"},
        {"unit_nest", "guard `tile_p == apl_ceil_div(p, T_p)`",
         "then a step has all of its parts, and what is beyond the end holds zeros"},
        {"deep unit_nest", "guard `step == 0`",
         "later steps fill the next tile's tables with what is there, between barriers"},
        {"bytes", "cp_async_commit", "single bytes are not copied asynchronously"},
        {"bytes", "cp_async_wait", "likewise"},
        {"units unit_lines unit_columns unit_rows unit_nest unit_bytes", "guard `ahead < steps`",
         "copies ask for the end of the depth, so they write zeros into a stage whose step does not come"},
        {"units unit_lines unit_columns unit_rows unit_nest unit_bytes", "guard `ahead == 0`",
         "a tile's table stays from its filling to its last step, so that a thread finds the same places again"},
        {"units unit_lines unit_columns unit_rows unit_nest unit_bytes", "guard `next < last`",
         "the half of the table that nothing reads until a next tile fills it gets the rows of a tile that is "
         "another's"},
        {"units unit_lines unit_columns unit_rows unit_bytes", "guard `tile_m == 0`",
         "the next tile's table is filled with the same rows again, behind one barrier and before another"},
        {"units unit_lines unit_columns unit_rows unit_nest unit_bytes", "guard `over` 3",
         "the half of the table is asked for by copies of M's operand by rows through registers, which these tile "
         "loops "
         "have not, and at a tile's first step, which is over"},
        {"units unit_lines unit_columns unit_nest", "guard `over` 6",
         "likewise in their second tile loops (unit_rows has such copies)"},
        {"unit_lines unit_columns", "guard `A_aligned` 1",
         "both operands' rows are as long, so that one tells of both"},
        {"unit_lines unit_columns", "guard `B_aligned` 1", "likewise"},
        {"unit_lines unit_columns", "cp_async_commit 3", "their second tile loops copy through registers"},
        {"unit_lines unit_columns", "cp_async_commit 4", "likewise"},
        {"unit_lines unit_columns", "cp_async_wait 2", "likewise"},
    };
    for (const int k : {1, 2, 3, 4, 5, 8, 9, 10, 12, 13, 14})
      all.push_back({"held", "guard `group * 4 << shift < width` " + std::to_string(k),
                     "of elements beyond the row's end nothing comes: leaving them out saves time"});
    for (const int k : {1, 2, 3, 4, 5})
      all.push_back({"near", "guard `group * 4 << shift < width` " + std::to_string(k), "likewise"});
    for (const int k : {1, 2, 3, 4})
      all.push_back({"held", "guard `step <= place` " + std::to_string(k),
                     "of a reduction the last thread's value alone is wanted, which every step reaches"});
    all.push_back({"held", "guard `step <= place` 5", "what is read instead is dropped"});
    all.push_back({"added folded looked_up", "guard `blocks > 1` 1",
                   "a block that is alone has one row, which all of its threads may share as well as some"});
    all.push_back(
        {"added folded looked_up", "guard `blocks > 1` 2", "one block's share is cut off where the elements end"});
    all.push_back({"added folded looked_up", "guard `blocks > 1` 3", "one block's part is number 0"});
    all.push_back({"swept tiled filtered parted", "guard `blocks > 1` 1", "its teams are blocks anyway"});
    all.push_back(
        {"swept tiled filtered parted", "guard `blocks > 1` 2", "one block's share is cut off where the elements end"});
    for (const char* array : {"as", "bs", "scanned", "A", "B"})
      all.push_back({"added folded swept tiled filtered parted along",
                     fmt::format("guard `apl_aligned<16>({})`", array),
                     "what a backend allocates is aligned; only a caller's memory may not be"});
    all.push_back(
        {"added folded looked_up", "guard `team > 32`", "a thread that is a team by itself finds its own value there"});
    all.push_back({"folded", "guard `team < 32`", "several blocks have whole warps, and one thread no neighbours"});
    for (const int k : {1, 2, 5, 6})
      all.push_back({"swept tiled", fmt::format("guard `step <= lane` {}", k), "what is read instead is dropped"});
    for (const int k : {1, 2}) {
      all.push_back({"swept tiled", fmt::format("guard `warp > 0` {}", k), "likewise"});
      all.push_back({"swept tiled", fmt::format("guard `lane > 0` {}", k), "likewise"});
    }
    for (const auto& [entry, guard] :
         {std::pair{"columns", "guard `apl_aligned<4>(A)`"}, std::pair{"columns", "guard `apl_aligned<16>(r)`"},
          std::pair{"looked_up", "guard `apl_aligned<8>(as)`"}})
      all.push_back({entry, guard, "what a backend allocates is aligned; only a caller's memory may not be"});
    const char* const dropped = "what is read instead is dropped";
    for (const char* guard :
         {"guard `step <= lane` 1", "guard `step <= lane` 3", "guard `warp > 0` 1", "guard `lane > 0` 1"})
      all.push_back({"filtered parted", guard, dropped});
    for (const char* guard :
         {"guard `step <= lane` 1", "guard `step <= lane` 2", "guard `lane > 0` 1", "guard `lane > 0` 2"})
      all.push_back({"along", guard, dropped});
    all.push_back({"along", "guard `own < m` 1", "a team without a row goes through none of its elements"});
    all.push_back({"along", "guard `at + next < bound` 3", "what comes behind the row's end goes nowhere"});
    all.push_back({"filtered", "guard `c` 1", "of no elements the sum is the neutral element"});
    all.push_back({"filtered parted", "guard `place < n` 1", "no more elements are written than there are"});
    all.push_back({"filtered parted", "warp_barrier 2", "shuffles of a round have brought the lanes together by then"});
    all.push_back({"swept tiled filtered parted", "warp_barrier 1", "lanes have folded what they asked for by then"});
    all.push_back(
        {"swept tiled filtered parted", "guard `warp == 0` 2", "other warps took no number, and 0 is not the last"});
    all.push_back({"swept tiled filtered parted", "guard `tile > 0`",
                   "before the first tile there is nothing: it learns of nothing"});
    all.push_back({"swept tiled filtered parted", "guard `lane == 0` 1", "all lanes publish the same"});
    return all;
  }();
  return kAll;
}

}  // namespace apl::mutants
